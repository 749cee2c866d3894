"""Adapt the names of mesh files in a description that is written to another folder than the one it came from.

A relative name starts at the folder of the description, so that a copy elsewhere would lose its meshes, and simulators
would refuse it. Relative names of existing files are rewritten to start at the new folder; no mesh is opened. All
others (``package://``, absolute names, missing files) stay as they are.
"""

from __future__ import annotations

import os
from pathlib import Path

from dynid.robot.formats.xml import TextEdits, XmlDocument, element_lines

FOLDERS = ("assetdir", "meshdir", "texturedir")
"""Attributes of MuJoCo's ``<compiler>`` that name folders of assets."""
FILE_ATTRIBUTES = {"mesh": ("filename", "file"), "hfield": ("file",), "texture": ("file",), "skin": ("file",)}
"""Element -> attributes that name its file: a mesh in a URDF, and assets in an MJCF."""


def follow_meshes(edits: TextEdits, document: XmlDocument, folder: Path) -> None:
    """Keep the meshes of a URDF or the assets of an MJCF that is written to another folder.

    Where an MJCF names folders of assets, MuJoCo puts these before relative names, so that names become absolute there.
    Of the name of a mesh in a URDF, MuJoCo takes the last part only, unless ``strippath`` is off; so it is switched off
    in MuJoCo's extension of the URDF.

    Args:
        edits: Gets the changes of the text.
        document: The description; its path is where it came from.
        folder: The folder that it is written to.
    """
    source = Path(document.path)
    root = document.root
    if not source.is_file() or source.parent.resolve() == folder.resolve():
        return
    origin = source.parent.resolve()
    # folders in which MuJoCo looks for assets
    compilers = [part for part in root.walk() if part.tag == "compiler"]
    asset_folders = [c.attributes[name] for c in compilers for name in FOLDERS if name in c.attributes]
    is_changed = False
    for part in root.walk():
        for key in FILE_ATTRIBUTES.get(part.tag, ()):
            name = part.attributes.get(key, "")
            files = []
            if name and "://" not in name and not os.path.isabs(name):
                files = [origin / start / name for start in ("", *asset_folders)]
            # the first existing file with this name
            if target := next((file.resolve() for file in files if file.is_file()), None):
                new_name = target if asset_folders else Path(os.path.relpath(target, folder.resolve()))
                edits.set_attribute(part, key, new_name.as_posix())
                is_changed = True
    if is_changed and root.tag == "robot":
        if compilers:
            edits.set_attribute(compilers[-1], "strippath", "false")
        else:
            lines = element_lines("compiler", {"strippath": "false"})
            edits.insert_first(root, element_lines("mujoco", {}, lines))
