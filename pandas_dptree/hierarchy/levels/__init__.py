"""Levels of a hierarchy that are made from columns of the records."""
