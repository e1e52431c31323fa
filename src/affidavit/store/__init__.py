"""Where things are kept: the event log, evidence records and blobs of one workspace."""

from affidavit.store.blobs import Blobs
from affidavit.store.events import Event, Events, StoredEvent
from affidavit.store.records import Evidence
from affidavit.store.store import Store

__all__ = ["Blobs", "Event", "Events", "Evidence", "Store", "StoredEvent"]
