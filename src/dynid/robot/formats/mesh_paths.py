"""Names of mesh files in a description that is written to another folder than the one it came from.

A relative name leads from the folder of the description, so that a copy elsewhere loses its meshes, and simulators
refuse it. Names that lead to a file are turned to lead there from the new folder; no mesh is opened. All others
(``package://``, absolute ones, files that are not there) stay as they are.
"""

from __future__ import annotations

import os
from pathlib import Path

from dynid.robot.formats.xml import Element, TextEdits, XmlDocument, element_lines

FOLDERS = ("meshdir", "texturedir")
"""Attributes of MuJoCo's ``<compiler>`` that name folders of assets."""
ASSETS = ("mesh", "hfield", "texture", "skin")
"""Elements of an MJCF that name a file."""


def follow_meshes(edits: TextEdits, document: XmlDocument, folder: Path) -> None:
    """Keep the meshes of a URDF that is written to a folder; nothing happens where the folder is the same.

    MuJoCo takes the last part of a mesh's name only, unless ``strippath`` is off: its extension of URDF says so.
    """
    origin = _other_folder(document, folder)
    if origin is None:
        return
    extensions = [compiler for part in document.root.all("mujoco") for compiler in part.all("compiler")]
    for compiler in extensions:
        _follow_folders(edits, compiler, origin, folder)
    turned = False
    for mesh in document.root.walk():
        name = mesh.attributes.get("filename", "") if mesh.tag == "mesh" else ""
        if name and "://" not in name and not os.path.isabs(name) and (origin / name).is_file():
            edits.set_attribute(mesh, "filename", _lead(origin / name, folder))
            turned = True
    if not turned or any("meshdir" in compiler.attributes for compiler in extensions):
        return
    if extensions:
        edits.set_attribute(extensions[-1], "strippath", "false")
    else:
        compiler_lines = element_lines("compiler", {"strippath": "false"})
        edits.insert_first(document.root, element_lines("mujoco", {}, compiler_lines))


def follow_assets(edits: TextEdits, document: XmlDocument, folder: Path) -> None:
    """Keep the assets of an MJCF that is written to a folder, as `follow_meshes` does."""
    origin = _other_folder(document, folder)
    compilers = document.root.all("compiler")
    if origin is None or not any(_leads(part, compilers, origin) for part in document.root.walk()):
        return
    for compiler in compilers:
        _follow_folders(edits, compiler, origin, folder)
    given = {name for compiler in compilers for name in compiler.attributes}
    missing = [name for name in FOLDERS if name not in given and "assetdir" not in given]
    if missing and compilers:
        for name in missing:
            edits.set_attribute(compilers[-1], name, _lead(origin, folder))
    elif missing:
        lead = _lead(origin, folder)
        edits.insert_first(document.root, element_lines("compiler", dict.fromkeys(missing, lead)))


def _leads(element: Element, compilers: list[Element], origin: Path) -> bool:
    """Whether an element names a file that is there."""
    name = element.attributes.get("file", "") if element.tag in ASSETS else ""
    folders = ["", *(c.attributes[key] for c in compilers for key in ("assetdir", *FOLDERS) if key in c.attributes)]
    return bool(name) and not os.path.isabs(name) and any((origin / folder / name).is_file() for folder in folders)


def _follow_folders(edits: TextEdits, compiler: Element, origin: Path, folder: Path) -> None:
    for name in ("assetdir", *FOLDERS):
        given = compiler.attributes.get(name)
        if given is not None and not os.path.isabs(given) and (origin / given).is_dir():
            edits.set_attribute(compiler, name, _lead(origin / given, folder))


def _other_folder(document: XmlDocument, folder: Path) -> Path | None:
    """The folder that a description came from, if it is there and another one."""
    source = Path(document.path)
    if not source.is_file() or source.parent.resolve() == folder.resolve():
        return None
    return source.parent.resolve()


def _lead(target: Path, folder: Path) -> str:
    """How a name leads from a folder to a file."""
    return Path(os.path.relpath(target.resolve(), folder.resolve())).as_posix()
