"""Taking evidence out of a workspace and into another one, and a copy of all of it."""

from affidavit.store.exporting.exports import Exported, export_bundle
from affidavit.store.exporting.imports import Imported, import_bundle, importable
from affidavit.store.exporting.selection import Selection

__all__ = ["Exported", "Imported", "Selection", "export_bundle", "import_bundle", "importable"]
