"""The differences from DxDispatch: each row of the documentation has a test."""

import re

from tests.project.texts import names_of_tests, section

TESTS = {
    "other dispatchables": "test_other_dispatchables",
    "deferred values": "test_wrong_values",
    "wrap": "test_forms_of_an_enum",
    "bytes are printed as numbers": "test_printed_numbers",
    "resources are printed whole": "test_the_size_and_the_offset",
    "raw files have no padding": "test_arrays_and_raw_data",
    "all or nothing": "test_a_wrong_part",
    "folders are not made": "test_a_wrong_target",
    "more images": "test_images_go_through_unchanged",
    "pixels are rounded": "test_written_floats_are_clipped_and_rounded",
    "unknown fields": "test_a_wrong_part",
    "other spellings": "test_a_number_is_not_an_object_of_its_type",
    "duplicate names": "test_a_duplicate_among_many_names",
    "text after the model": "test_wrong_text",
    "null": "test_the_size_and_the_offset",
    "numbers for enum values": "test_forms_of_an_enum",
    "halves in mixed lists": "test_a_list_of_mixed_types",
    "numbers past the largest float": "test_a_dict_and_a_file_give_the_same",
    "halves are rounded": "test_initial_values",
    "element count": "test_a_wrong_binding",
    "bindings of a dispatchable": "test_an_owned_input_keeps_its_initial_values",
    "alignment": "test_alignment",
    "overlapping outputs": "test_refused_outputs",
    "rows past the count": "test_two_outputs_in_one_resource",
}


def test_every_row_has_a_test():
    table = section("docs/model_files.md", "Differences from DxDispatch")
    assert re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[1:] == list(TESTS)
    assert set(TESTS.values()) <= names_of_tests()
