"""Tests of the native analyzer."""
