"""Names of mesh files in a description that is written to another folder than the one it came from.

A relative name leads from the folder of the description, so that a copy elsewhere loses its meshes, and simulators
refuse it. Names that lead to a file are turned to lead there from the new folder; no mesh is opened. All others
(``package://``, absolute ones, files that are not there) stay as they are.
"""

from __future__ import annotations

import os
from pathlib import Path

from dynid.robot.formats.xml import TextEdits, XmlDocument, element_lines

FOLDERS = ("assetdir", "meshdir", "texturedir")
"""Attributes of MuJoCo's ``<compiler>`` that name folders of assets."""
NAMED = {"mesh": ("filename", "file"), "hfield": ("file",), "texture": ("file",), "skin": ("file",)}
"""Element -> attributes that name its file: a mesh in a URDF, and assets in an MJCF."""


def follow_meshes(edits: TextEdits, document: XmlDocument, folder: Path) -> None:
    """Keep the meshes of a URDF or the assets of an MJCF that is written to a folder.

    Nothing happens where the folder is the same. MuJoCo puts its folders before relative names, so that names in a file
    that names such folders become absolute; and of meshes in a URDF it takes the last part of the name only, unless
    ``strippath`` is off: its extension of URDF says so.
    """
    source, root = Path(document.path), document.root
    if not source.is_file() or source.parent.resolve() == folder.resolve():
        return
    origin, compilers = source.parent.resolve(), [part for part in root.walk() if part.tag == "compiler"]
    own = [c.attributes[name] for c in compilers for name in FOLDERS if name in c.attributes]
    turned = False
    for part in root.walk():
        for key in NAMED.get(part.tag, ()):
            name = part.attributes.get(key, "")
            files = (
                [] if not name or "://" in name or os.path.isabs(name) else [origin / at / name for at in ("", *own)]
            )
            if target := next((file.resolve() for file in files if file.is_file()), None):
                lead = target if own else Path(os.path.relpath(target, folder.resolve()))
                edits.set_attribute(part, key, lead.as_posix())
                turned = True
    if turned and root.tag == "robot":
        if compilers:
            edits.set_attribute(compilers[-1], "strippath", "false")
        else:
            lines = element_lines("compiler", {"strippath": "false"})
            edits.insert_first(root, element_lines("mujoco", {}, lines))
