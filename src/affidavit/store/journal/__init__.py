"""The journal of a session: chained lines, written as events happen, that a stranger can check and restore."""

from affidavit.store.journal.reader import Problem
from affidavit.store.journal.restore import Restored, restore
from affidavit.store.journal.settings import Fsync, JournalSettings
from affidavit.store.journal.verify import Report, verify
from affidavit.store.journal.writer import Journal

__all__ = ["Fsync", "Journal", "JournalSettings", "Problem", "Report", "Restored", "restore", "verify"]
