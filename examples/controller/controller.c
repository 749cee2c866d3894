/*
 * A computed-torque controller at 1 kHz, in C, on a simulated PUMA 560.
 *
 * Two generated packages are linked: `model` is what the controller knows (identified parameters), `plant` is the robot
 * that moves (true parameters). The controller runs in two rates, as on a real machine: background tasks refresh
 * inertias and velocity torques every BACKGROUND periods, the synchronous task multiplies and adds in every period.
 */
#include <math.h>
#include <stdio.h>

#include "model.h"
#include "model_two_rate.h"
#include "plant.h"

#define N MODEL_DOF
#define PERIOD 0.001
#define DURATION 1.5
#define SUBSTEPS 4
#define KP 400.0
#define KD 40.0

/* Fifth-order move from rest to rest over DURATION seconds. */
static void reference(double t, double q[N], double dq[N], double ddq[N])
{
    static const double start[N] = {0.0, -0.5, 0.3, 0.0, 0.2, 0.0};
    static const double stroke[N] = {1.2, 0.9, -1.0, 1.5, 0.8, -1.2};
    const double u = t / DURATION;
    int i;
    for (i = 0; i < N; i++) {
        q[i] = start[i] + stroke[i] * u * u * u * (10.0 - 15.0 * u + 6.0 * u * u);
        dq[i] = stroke[i] / DURATION * 30.0 * u * u * (1.0 - 2.0 * u + u * u);
        ddq[i] = stroke[i] / (DURATION * DURATION) * 60.0 * u * (1.0 - 3.0 * u + 2.0 * u * u);
    }
}

/* One semi-implicit step of the simulated robot. */
static void move(double q[N], double dq[N], const double torque[N], double h)
{
    double ddq[N];
    int i;
    plant_forward_dynamics(q, dq, torque, ddq);
    for (i = 0; i < N; i++) {
        dq[i] += h * ddq[i];
        q[i] += h * dq[i];
    }
}

/* Runs the loop with inertias and velocity torques refreshed every `background` periods; returns the largest error. */
static double run(int background)
{
    static model_exchange exchange;
    static model_coefficients coefficients;
    double q[N], dq[N], q_wanted[N], dq_wanted[N], ddq[N], torque[N];
    double inertia[N * (N + 1) / 2], gravity[N], velocity[N];
    double worst = 0.0;
    const int periods = (int)(DURATION / PERIOD);
    int k, i;
    model_exchange_init(&exchange);
    reference(0.0, q, dq, ddq);
    for (k = 0; k < periods; k++) {
        if (k % background == 0) { /* the background tasks; elsewhere they would run beside the loop */
            model_background_inertia(q, inertia, gravity);
            model_publish_inertia(&exchange, inertia, gravity);
            model_background_velocity(q, dq, velocity);
            model_publish_velocity(&exchange, velocity);
        }
        reference(k * PERIOD, q_wanted, dq_wanted, ddq);
        for (i = 0; i < N; i++) {
            const double error = fabs(q_wanted[i] - q[i]);
            worst = (error > worst) ? error : worst;
            ddq[i] += KD * (dq_wanted[i] - dq[i]) + KP * (q_wanted[i] - q[i]);
        }
        if (model_collect(&exchange, &coefficients) != 0) {
            return HUGE_VAL; /* no background task has published: there is no torque to send */
        }
        model_synchronous(coefficients.inertia, coefficients.gravity, coefficients.velocity, ddq, torque);
        for (i = 0; i < SUBSTEPS; i++) {
            move(q, dq, torque, PERIOD / SUBSTEPS);
        }
    }
    return worst;
}

int main(void)
{
    static const int periods[] = {1, 2, 5, 10, 20};
    size_t i;
    printf("background period [ms]  largest tracking error [rad]\n");
    for (i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
        const double worst = run(periods[i]);
        printf("%22d  %.2e\n", periods[i], worst);
        if (!(worst < 0.05)) {
            return 1;
        }
    }
    return 0;
}
