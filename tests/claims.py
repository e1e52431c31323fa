"""What README and docs promise, and the tests that hold it.

In the text a promise ends in `<!-- claim: ID -->`. `tests/project/test_claims.py` checks both directions: every marked
sentence is here with the same words, everything here is marked in the text, and every test named here exists.
"""

from dataclasses import dataclass

__all__ = ["CLAIMS", "Claim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One promise.

    Attributes:
        id: what the marker in the text says.
        page: the page that says it, from the project's root.
        sentence: the words before the marker.
        tests: `path::test` from `tests/`, each of which fails when the promise does not hold.
    """

    id: str
    page: str
    sentence: str
    tests: tuple[str, ...]


CLAIMS = (
    Claim(
        id="recorded-before-return",
        page="README.md",
        sentence="Every call becomes a record before its value reaches the script.",
        tests=(
            "runtime/test_broker.py::test_a_call_returns_its_value_and_is_recorded",
            "runtime/test_broker.py::test_the_start_is_in_the_log_before_the_operation_runs",
            "runtime/test_broker.py::test_a_failed_call_is_recorded_with_code_and_details",
            "runtime/test_broker.py::test_a_store_that_cannot_keep_the_record_stops_the_run",
        ),
    ),
    Claim(
        id="survives-kill",
        page="README.md",
        sentence="A process that is killed at any moment loses no call whose value a script received.",
        tests=(
            "acceptance/test_processes.py::test_a_process_killed_at_any_moment_loses_no_call",
            "runtime/test_session.py::test_a_killed_process_leaves_its_call_as_unfinished_and_is_never_run_again",
        ),
    ),
    Claim(
        id="same-ids",
        page="README.md",
        sentence="The same question about the same bytes has the same evidence id everywhere.",
        tests=(
            "acceptance/test_identity.py::test_on_two_workspaces_two_paths_and_two_engines",
            "acceptance/test_identity.py::test_under_two_mount_names",
            "acceptance/test_identity.py::test_a_changed_byte_changes_every_id",
            "acceptance/test_identity.py::test_on_python_3_13",
        ),
    ),
    Claim(
        id="proof-only",
        page="README.md",
        sentence="A script is refused only for what is proven wrong; a correct script is never rejected.",
        tests=("docs/test_examples.py::test_script",),
    ),
    Claim(
        id="isolation",
        page="README.md",
        sentence="A script reaches nothing outside but through `df`.",
        tests=("interfaces/test_cli.py::test_doctor_tries_each_layer",),
    ),
    Claim(
        id="limits",
        page="README.md",
        sentence="A script cannot catch its own time-out, and what it did until then is kept.",
        tests=("runtime/test_session.py::test_a_timed_out_run_keeps_what_it_did",),
    ),
    Claim(
        id="local-damage",
        page="README.md",
        sentence="One broken file never stops the rest of an application.",
        tests=(
            "analyzers/javascript/test_analyzer_hostile.py::test_odd_sources_cost_themselves_alone",
            "analyzers/javascript/test_analyzer_hostile.py::test_bad_entries_of_an_archive_do_not_stop_the_rest",
        ),
    ),
    Claim(
        id="no-target-code",
        page="README.md",
        sentence="No code of the analysed application is run.",
        tests=("analyzers/javascript/test_analyzer_hostile.py::test_no_code_of_the_application_is_run",),
    ),
    Claim(
        id="references-equal-oracle",
        page="README.md",
        sentence="References equal those that independent JavaScript parsers find.",
        tests=("acceptance/test_question.py::test_the_answer_equals_the_oracles",),
    ),
    Claim(
        id="tampering-shows",
        page="README.md",
        sentence="A bundle, an answer or a journal in which a byte was changed does not verify.",
        tests=(
            "acceptance/test_verify.py::test_a_changed_file_is_refused_everywhere_with_its_place",
            "evidence/test_bundle.py::test_every_byte_changed_is_found_in_its_section",
            "store/journal/test_damage.py::test_an_edited_line",
        ),
    ),
    Claim(
        id="verifiers-agree",
        page="docs/bundles.md",
        sentence="It and the product say the same of every file, also of lies whose ids and links were all made anew.",
        tests=(
            "vectors/test_differential.py::test_of_bundles_and_answers",
            "vectors/test_differential.py::test_of_journals",
        ),
    ),
    Claim(
        id="doctor-misses-rows",
        page="docs/bundles.md",
        sentence="It finds rows that were deleted between others, and records and blobs that are referred to and gone.",
        tests=(
            "store/test_integrity.py::test_rows_that_were_deleted_are_missed",
            "store/test_integrity.py::test_an_event_that_no_session_writes_is_found",
            "store/test_integrity.py::test_what_must_come_before_an_event_is_looked_for",
        ),
    ),
    Claim(
        id="odd-events-stop-nothing",
        page="docs/bundles.md",
        sentence="An event that does not hold is left out of what a session finds, is told, and stops nothing else.",
        tests=("acceptance/test_odd_events.py::test_sessions_are_listed_shown_and_gone_on_with",),
    ),
    Claim(
        id="json-everywhere",
        page="README.md",
        sentence="Every command has `--json`: one document on stdout, errors included.",
        tests=(
            "interfaces/test_cli.py::test_errors_are_documents_with_code_and_hint",
            "interfaces/test_cli.py::test_every_command_has_help_and_json",
        ),
    ),
    Claim(
        id="log-order",
        page="docs/sessions.md",
        sentence="Requests are served in the order of the log, so each script sees what those before it returned.",
        tests=(
            "runtime/test_turns.py::test_clients_are_served_in_the_order_of_the_log",
            "runtime/test_turns.py::test_processes_take_turns_and_see_what_was_settled_before",
        ),
    ),
    Claim(
        id="idempotent",
        page="docs/sessions.md",
        sentence="It is run once, and every repetition returns what came of the first, also from another process.",
        tests=(
            "runtime/test_turns.py::test_the_same_request_again_returns_the_first_settlement",
            "runtime/test_turns.py::test_the_same_request_twice_at_once_runs_once",
            "runtime/test_turns.py::test_a_lost_request_is_not_run_again_under_its_key",
        ),
    ),
    Claim(
        id="orphaned",
        page="docs/sessions.md",
        sentence="A script whose process dies is settled as `orphaned` as soon as anybody opens the session or looks "
        "at it, and never run again by itself.",
        tests=(
            "interfaces/test_cli_memory.py::test_looking_at_a_session_settles_what_lost_its_process",
            "runtime/test_session.py::test_a_killed_process_leaves_its_call_as_unfinished_and_is_never_run_again",
            "runtime/test_turns.py::test_a_process_killed_while_it_waits_loses_its_place",
            "runtime/test_turns.py::test_what_may_have_had_an_effect_is_said",
        ),
    ),
    Claim(
        id="replay-closed",
        page="docs/replay.md",
        sentence="A replay calls nothing outside, and writes nothing.",
        tests=(
            "runtime/replay/test_replay.py::test_a_run_comes_out_the_same",
            "runtime/replay/test_replay.py::test_what_the_session_answered_is_told_again",
            "runtime/replay/test_corpora.py::test_ordinary_scripts_come_out_the_same",
            "runtime/replay/test_corpora.py::test_scripts_as_agents_write_them_come_out_the_same",
            "runtime/replay/test_corpora.py::test_whatever_is_woven_comes_out_the_same",
        ),
    ),
    Claim(
        id="replay-tampered",
        page="docs/replay.md",
        sentence="A record that was changed afterwards ends the replay with exit code 4.",
        tests=(
            "runtime/replay/test_divergence.py::test_a_changed_record_does_not_hold",
            "runtime/replay/test_divergence.py::test_a_changed_blob_does_not_hold",
            "runtime/replay/test_divergence.py::test_a_record_that_holds_and_says_something_else_changes_the_value",
            "acceptance/test_replay.py::test_a_changed_record_ends_a_replay_with_exit_code_4",
        ),
    ),
    Claim(
        id="replay-journal",
        page="docs/replay.md",
        sentence="A journal is enough: `affidavit replay RUN --journal FILE` needs no workspace.",
        tests=(
            "runtime/replay/test_divergence.py::test_a_journal_is_enough",
            "acceptance/test_replay.py::test_a_journal_alone_is_replayed_elsewhere",
        ),
    ),
    Claim(
        id="reuse-once",
        page="docs/replay.md",
        sentence="Each value is found at exactly one place, or the command refuses and lists the places.",
        tests=(
            "runtime/replay/test_reuse.py::test_what_is_not_found_once_is_refused_with_the_places",
            "runtime/replay/test_reuse.py::test_a_value_is_found_by_the_name_it_stands_under",
            "acceptance/test_replay.py::test_an_earlier_script_runs_with_other_values",
        ),
    ),
    Claim(
        id="first-shortest-path",
        page="docs/graphs.md",
        sentence="Of several shortest paths `path` gives the one whose edges come first in native order.",
        tests=(
            "facts/graph/test_three_blocks.py::test_all_questions_about_all_graphs_of_three_blocks",
            "facts/graph/test_path.py::test_parallel_edges_are_told_apart",
            "facts/graph/test_other_queries.py::test_the_first_is_the_path",
        ),
    ),
    Claim(
        id="not-found-names-the-cut",
        page="docs/graphs.md",
        sentence="Every way on passes an excluded block or edge that the `certificate` names.",
        tests=(
            "facts/graph/test_path.py::test_the_certificate_is_the_cut",
            "facts/graph/test_other_queries.py::test_lifting_what_is_no_certificate_changes_nothing",
            "acceptance/test_graphs.py::test_can_it_return_without_passing_the_check",
        ),
    ),
    Claim(
        id="unknown-ids-are-named",
        page="docs/graphs.md",
        sentence="A misspelt exclusion is named in `missing` and never makes a path.",
        tests=(
            "facts/graph/test_path.py::test_every_missing_id_is_named_with_its_argument",
            "facts/graph/test_path.py::test_a_missing_id_hides_behind_nothing",
            "acceptance/test_graphs.py::test_a_misspelt_exclusion_is_named",
        ),
    ),
    Claim(
        id="import-refuses",
        page="docs/graphs.md",
        sentence="A function whose blocks and edges make no graph is refused by itself, and its record kept.",
        tests=(
            "analyzers/graph/test_import.py::test_a_function_that_makes_no_graph_is_refused_and_its_record_kept",
            "analyzers/graph/test_import.py::test_ids_that_cannot_be_used_are_told_under_their_place",
        ),
    ),
    Claim(
        id="pictures-repeat",
        page="docs/graphs.md",
        sentence="The same facts have the same picture, byte for byte.",
        tests=(
            "interfaces/pictures/test_languages.py::test_the_same_facts_have_the_same_bytes",
            "interfaces/test_graph.py::test_the_same_picture_each_time_in_each_language",
        ),
    ),
    Claim(
        id="pictures-outline",
        page="docs/graphs.md",
        sentence="A function of more than 300 blocks is outlined, and its picture says so.",
        tests=(
            "interfaces/pictures/test_languages.py::test_an_outline_says_that_it_is_one",
            "interfaces/pictures/test_outline.py::test_each_block_is_in_one_box_and_there_are_not_too_many",
            "interfaces/pictures/test_outline.py::test_a_region_is_entered_at_its_first_block",
        ),
    ),
    Claim(
        id="native-flow",
        page="docs/native.md",
        sentence="In a stripped SQLite every branch and jump-table entry is found that objdump and relocations prove.",
        tests=(
            "analyzers/native/test_sqlite.py::test_every_function_is_found",
            "analyzers/native/test_sqlite.py::test_every_branch_is_found_and_none_invented",
            "analyzers/native/test_sqlite.py::test_every_jump_table_is_read_to_its_end",
        ),
    ),
    Claim(
        id="native-flow-aarch64",
        page="docs/native.md",
        sentence="So it is on AArch64, where the compiler's own assembly proves the tables.",
        tests=(
            "analyzers/native/test_sqlite.py::test_every_function_is_found",
            "analyzers/native/test_sqlite.py::test_every_branch_is_found_and_none_invented",
            "analyzers/native/test_sqlite.py::test_every_jump_table_is_read_to_its_end",
        ),
    ),
    Claim(
        id="native-on-demand",
        page="docs/native.md",
        sentence="It says what an analysis of everything says.",
        tests=("analyzers/native/test_on_demand.py::test_a_part_says_what_the_whole_says",),
    ),
    Claim(
        id="native-formats",
        page="docs/native.md",
        sentence="Each start that `.pdata` or `LC_FUNCTION_STARTS` tells is a function.",
        tests=(
            "analyzers/native/test_formats.py::test_functions_are_those_that_the_file_tells",
            "analyzers/native/test_formats.py::test_starts_and_imports_of_compiled_rust",
        ),
    ),
    Claim(
        id="native-literals",
        page="docs/native.md",
        sentence="where the symbol table declares data (`$d`), that is an unknown.",
        tests=(
            "analyzers/native/test_aarch64.py::test_literals_are_no_code_and_are_listed",
            "analyzers/native/test_aarch64.py::test_what_is_declared_to_be_data_is_not_decoded",
        ),
    ),
    Claim(
        id="native-objdump",
        page="docs/native.md",
        sentence="Each instruction of 200 functions of SQLite and of libc, chosen at random, leads where objdump says.",
        tests=(
            "analyzers/native/test_second_disassembler.py::test_each_instruction_leads_where_objdump_says",
        ),
    ),
    Claim(
        id="native-unproven",
        page="docs/native.md",
        sentence="An edge that nothing proves is marked as such.",
        tests=(
            "analyzers/native/test_small_programs.py::test_computed_goto_without_a_bound_is_told",
            "analyzers/native/test_sqlite.py::test_every_jump_table_is_read_to_its_end",
        ),
    ),
    Claim(
        id="mounts-once",
        page="docs/mounts.md",
        sentence="That is kept, so sessions open without a connection and see the same types each time.",
        tests=("mounts/test_workspace.py::test_a_session_opens_without_the_server_and_has_the_same_stubs",),
    ),
    Claim(
        id="mounts-grant",
        page="docs/mounts.md",
        sentence="What has the effect `write` needs a grant of its own: `--grant 'write:tool.shop.*'`.",
        tests=("mounts/test_workspace.py::test_mounting_grants_reading_and_calling_and_no_writing",),
    ),
    Claim(
        id="mounts-secrets",
        page="docs/mounts.md",
        sentence="So a secret stands in no record, journal, log or reply.",
        tests=(
            "mounts/test_workspace.py::test_a_secret_is_in_no_file_no_reply_and_no_log",
            "mounts/test_secrets.py::test_of_a_server_on_standard_streams",
            "mounts/test_secrets.py::test_of_a_server_behind_a_url",
            "mounts/test_secrets.py::test_of_an_api",
            "mounts/test_secrets.py::test_of_a_program",
            "mounts/openapi/test_replies.py::test_credentials_go_where_their_scheme_says_and_show_nowhere",
        ),
    ),
    Claim(
        id="mounts-left-out",
        page="docs/mounts.md",
        sentence="One malformed tool or operation is left out alone, and `mount show`, `describe` and `doctor` say "
        "why.",
        tests=(
            "mounts/mcp/test_odd_server.py::test_a_tool_that_is_none_of_the_protocol_is_left_out_alone",
            "mounts/openapi/test_replies.py::test_one_odd_operation_costs_only_itself",
            "mounts/test_workspace.py::test_what_cannot_be_offered_is_told_by_show_describe_and_doctor",
        ),
    ),
    Claim(
        id="mounts-join",
        page="README.md",
        sentence="It is checked against both, and its answer cites every call.",
        tests=("acceptance/test_mounts_joined.py::test_a_script_joins_mounts_and_answers_with_evidence",),
    ),
    Claim(
        id="kit-loud",
        page="docs/mounts.md",
        sentence="What is not there is an error with its place and the nearest key, never a silent zero or empty text.",
        tests=(
            "conformance/test_kit.py::test_what_is_not_there_is_an_error_that_names_its_place",
            "conformance/test_kit.py::test_an_error_that_nobody_catches_names_line_place_and_nearest_key",
            "runtime/test_kit.py::test_a_script_with_it_passes_the_check_and_records_nothing",
        ),
    ),
    Claim(
        id="helpers-checked",
        page="docs/mounts.md",
        sentence="A helper that does not compile, or does not fit what it calls, is refused with its file and line.",
        tests=("mounts/test_seeds.py::test_one_that_cannot_be_is_refused_with_key_and_line",),
    ),
    Claim(
        id="helpers-pinned",
        page="docs/mounts.md",
        sentence="What was mounted is kept with its digest: a changed file counts when the mount is added again.",
        tests=("mounts/test_seeds.py::test_it_is_pinned_until_it_is_mounted_again",),
    ),
    Claim(
        id="mounts-broken",
        page="docs/mounts.md",
        sentence="One that cannot be loaded is a finding of `affidavit doctor` and stops no other.",
        tests=("mounts/test_workspace.py::test_adapters_that_are_broken_stop_no_other",),
    ),
    Claim(
        id="sql-types",
        page="docs/sql.md",
        sentence="SQLite's INTEGER columns may hold text, so every value is looked at when a file is mounted.",
        tests=(
            "mounts/sql/test_sqlite.py::test_rows_have_the_types_that_their_values_have",
            "mounts/sql/test_sqlite.py::test_values_keep_their_exact_types",
        ),
    ),
    Claim(
        id="sql-read-only",
        page="docs/sql.md",
        sentence="What writes, attaches, loads or reaches a file does not get through, however it is spelt.",
        tests=(
            "mounts/sql/test_guard.py::test_nothing_but_reading_gets_through",
            "mounts/sql/test_duckdb.py::test_nothing_but_reading_gets_through",
            "mounts/sql/test_postgres.py::test_nothing_but_reading_gets_through",
        ),
    ),
    Claim(
        id="sql-snapshot",
        page="docs/sql.md",
        sentence="When its bytes change, calls fail with `artifact-changed` until it is mounted again.",
        tests=(
            "mounts/sql/test_snapshot.py::test_a_file_that_changed_is_refused_until_it_is_mounted_again",
            "mounts/sql/test_duckdb.py::test_a_file_that_changed_is_refused",
        ),
    ),
    Claim(
        id="documents-limitations",
        page="docs/documents.md",
        sentence="What cannot be read is a limitation with its place and stops nothing.",
        tests=(
            "mounts/documents/test_documents.py::test_what_cannot_be_read_is_said_with_its_place_and_stops_nothing",
            "mounts/documents/test_documents.py::test_a_hostile_pdf_costs_only_itself",
        ),
    ),
    Claim(
        id="documents-incremental",
        page="docs/documents.md",
        sentence="Mounting again reads only the files that changed.",
        tests=("mounts/documents/test_documents.py::test_only_what_changed_is_read_again",),
    ),
    Claim(
        id="search-no-syntax",
        page="docs/documents.md",
        sentence="Nothing in a question is syntax: quotes, `AND`, `*`, `-` are words or nothing.",
        tests=("mounts/documents/test_searching.py::test_nothing_in_a_question_is_syntax",),
    ),
)
