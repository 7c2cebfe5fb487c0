
// clang-format sorts includes unless SortIncludes: Never. However, the ordering
// does matter here. So, we need to disable clang-format for safety.

// clang-format off
#include <stdint.h>
#include <Rinternals.h>
#include <R_ext/Parse.h>
// clang-format on

#include "rust/api.h"

static uintptr_t TAGGED_POINTER_MASK = (uintptr_t)1;

SEXP handle_result(SEXP res_) {
    uintptr_t res = (uintptr_t)res_;

    // An error is indicated by tag.
    if ((res & TAGGED_POINTER_MASK) == 1) {
        // Remove tag
        SEXP res_aligned = (SEXP)(res & ~TAGGED_POINTER_MASK);

        // Currently, there are two types of error cases:
        //
        //   1. Error from Rust code
        //   2. Error from R's C API, which is caught by R_UnwindProtect()
        //
        if (TYPEOF(res_aligned) == CHARSXP) {
            // In case 1, the result is an error message that can be passed to
            // Rf_errorcall() directly.
            Rf_errorcall(R_NilValue, "%s", CHAR(res_aligned));
        } else {
            // In case 2, the result is the token to restart the
            // cleanup process on R's side.
            R_ContinueUnwind(res_aligned);
        }
    }

    return (SEXP)res;
}

SEXP savvy_native_arm_curves__impl(SEXP c_arg__run, SEXP c_arg__confidence, SEXP c_arg__threads) {
    SEXP res = savvy_native_arm_curves__ffi(c_arg__run, c_arg__confidence, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_asks_for_several__impl(SEXP c_arg__n_tables, SEXP c_arg__imputation, SEXP c_arg__roles) {
    SEXP res = savvy_native_asks_for_several__ffi(c_arg__n_tables, c_arg__imputation, c_arg__roles);
    return handle_result(res);
}

SEXP savvy_native_audit__impl(SEXP c_arg__run, SEXP c_arg__by, SEXP c_arg__seeds, SEXP c_arg__threads) {
    SEXP res = savvy_native_audit__ffi(c_arg__run, c_arg__by, c_arg__seeds, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_cancel__impl(SEXP c_arg__job) {
    SEXP res = savvy_native_cancel__ffi(c_arg__job);
    return handle_result(res);
}

SEXP savvy_native_check__impl(SEXP c_arg__columns, SEXP c_arg__id, SEXP c_arg__kind, SEXP c_arg__roles, SEXP c_arg__options, SEXP c_arg__threads) {
    SEXP res = savvy_native_check__ffi(c_arg__columns, c_arg__id, c_arg__kind, c_arg__roles, c_arg__options, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_compare__impl(SEXP c_arg__columns, SEXP c_arg__id, SEXP c_arg__kind, SEXP c_arg__roles, SEXP c_arg__options, SEXP c_arg__ties, SEXP c_arg__threads) {
    SEXP res = savvy_native_compare__ffi(c_arg__columns, c_arg__id, c_arg__kind, c_arg__roles, c_arg__options, c_arg__ties, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_curves__impl(SEXP c_arg__run, SEXP c_arg__patients, SEXP c_arg__at, SEXP c_arg__by, SEXP c_arg__threads) {
    SEXP res = savvy_native_curves__ffi(c_arg__run, c_arg__patients, c_arg__at, c_arg__by, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_default_options__impl(SEXP c_arg__adjusted) {
    SEXP res = savvy_native_default_options__ffi(c_arg__adjusted);
    return handle_result(res);
}

SEXP savvy_native_explore__impl(SEXP c_arg__run, SEXP c_arg__port, SEXP c_arg__time_unit, SEXP c_arg__threads) {
    SEXP res = savvy_native_explore__ffi(c_arg__run, c_arg__port, c_arg__time_unit, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_figure__impl(SEXP c_arg__run, SEXP c_arg__kind, SEXP c_arg__path, SEXP c_arg__force, SEXP c_arg__width, SEXP c_arg__time_unit, SEXP c_arg__threads) {
    SEXP res = savvy_native_figure__ffi(c_arg__run, c_arg__kind, c_arg__path, c_arg__force, c_arg__width, c_arg__time_unit, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_fit__impl(SEXP c_arg__columns, SEXP c_arg__id, SEXP c_arg__kind, SEXP c_arg__roles, SEXP c_arg__options, SEXP c_arg__by, SEXP c_arg__audit, SEXP c_arg__threads) {
    SEXP res = savvy_native_fit__ffi(c_arg__columns, c_arg__id, c_arg__kind, c_arg__roles, c_arg__options, c_arg__by, c_arg__audit, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_fit_several__impl(SEXP c_arg__frames, SEXP c_arg__id, SEXP c_arg__kind, SEXP c_arg__names, SEXP c_arg__imputation, SEXP c_arg__roles, SEXP c_arg__options, SEXP c_arg__by, SEXP c_arg__audit, SEXP c_arg__threads) {
    SEXP res = savvy_native_fit_several__ffi(c_arg__frames, c_arg__id, c_arg__kind, c_arg__names, c_arg__imputation, c_arg__roles, c_arg__options, c_arg__by, c_arg__audit, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_id_column__impl(SEXP c_arg__names, SEXP c_arg__roles) {
    SEXP res = savvy_native_id_column__ffi(c_arg__names, c_arg__roles);
    return handle_result(res);
}

SEXP savvy_native_id_of_new__impl(SEXP c_arg__run, SEXP c_arg__id) {
    SEXP res = savvy_native_id_of_new__ffi(c_arg__run, c_arg__id);
    return handle_result(res);
}

SEXP savvy_native_is_gone__impl(SEXP c_arg__pointer) {
    SEXP res = savvy_native_is_gone__ffi(c_arg__pointer);
    return handle_result(res);
}

SEXP savvy_native_matches__impl(SEXP c_arg__run, SEXP c_arg__id, SEXP c_arg__all, SEXP c_arg__threads) {
    SEXP res = savvy_native_matches__ffi(c_arg__run, c_arg__id, c_arg__all, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_open__impl(SEXP c_arg__path, SEXP c_arg__threads) {
    SEXP res = savvy_native_open__ffi(c_arg__path, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_predict__impl(SEXP c_arg__run, SEXP c_arg__columns, SEXP c_arg__id, SEXP c_arg__max_distance, SEXP c_arg__groups, SEXP c_arg__threads) {
    SEXP res = savvy_native_predict__ffi(c_arg__run, c_arg__columns, c_arg__id, c_arg__max_distance, c_arg__groups, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_refuse_idle__impl(SEXP c_arg__options, SEXP c_arg__given) {
    SEXP res = savvy_native_refuse_idle__ffi(c_arg__options, c_arg__given);
    return handle_result(res);
}

SEXP savvy_native_report__impl(SEXP c_arg__run, SEXP c_arg__path, SEXP c_arg__force, SEXP c_arg__title, SEXP c_arg__about, SEXP c_arg__time_unit, SEXP c_arg__threads) {
    SEXP res = savvy_native_report__ffi(c_arg__run, c_arg__path, c_arg__force, c_arg__title, c_arg__about, c_arg__time_unit, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_run_of__impl(SEXP c_arg__several, SEXP c_arg__i, SEXP c_arg__threads) {
    SEXP res = savvy_native_run_of__ffi(c_arg__several, c_arg__i, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_save__impl(SEXP c_arg__pointer, SEXP c_arg__path, SEXP c_arg__force, SEXP c_arg__format, SEXP c_arg__threads) {
    SEXP res = savvy_native_save__ffi(c_arg__pointer, c_arg__path, c_arg__force, c_arg__format, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_scenarios__impl(void) {
    SEXP res = savvy_native_scenarios__ffi();
    return handle_result(res);
}

SEXP savvy_native_settings__impl(void) {
    SEXP res = savvy_native_settings__ffi();
    return handle_result(res);
}

SEXP savvy_native_simulate__impl(SEXP c_arg__scenario, SEXP c_arg__n, SEXP c_arg__seed, SEXP c_arg__confounded, SEXP c_arg__threads) {
    SEXP res = savvy_native_simulate__ffi(c_arg__scenario, c_arg__n, c_arg__seed, c_arg__confounded, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_stage__impl(SEXP c_arg__job) {
    SEXP res = savvy_native_stage__ffi(c_arg__job);
    return handle_result(res);
}

SEXP savvy_native_stop__impl(SEXP c_arg__server) {
    SEXP res = savvy_native_stop__ffi(c_arg__server);
    return handle_result(res);
}

SEXP savvy_native_style_sheet__impl(void) {
    SEXP res = savvy_native_style_sheet__ffi();
    return handle_result(res);
}

SEXP savvy_native_uses__impl(SEXP c_arg__run, SEXP c_arg__threads) {
    SEXP res = savvy_native_uses__ffi(c_arg__run, c_arg__threads);
    return handle_result(res);
}

SEXP savvy_native_wait__impl(SEXP c_arg__job, SEXP c_arg__seconds) {
    SEXP res = savvy_native_wait__ffi(c_arg__job, c_arg__seconds);
    return handle_result(res);
}


static const R_CallMethodDef CallEntries[] = {
    {"savvy_native_arm_curves__impl", (DL_FUNC) &savvy_native_arm_curves__impl, 3},
    {"savvy_native_asks_for_several__impl", (DL_FUNC) &savvy_native_asks_for_several__impl, 3},
    {"savvy_native_audit__impl", (DL_FUNC) &savvy_native_audit__impl, 4},
    {"savvy_native_cancel__impl", (DL_FUNC) &savvy_native_cancel__impl, 1},
    {"savvy_native_check__impl", (DL_FUNC) &savvy_native_check__impl, 6},
    {"savvy_native_compare__impl", (DL_FUNC) &savvy_native_compare__impl, 7},
    {"savvy_native_curves__impl", (DL_FUNC) &savvy_native_curves__impl, 5},
    {"savvy_native_default_options__impl", (DL_FUNC) &savvy_native_default_options__impl, 1},
    {"savvy_native_explore__impl", (DL_FUNC) &savvy_native_explore__impl, 4},
    {"savvy_native_figure__impl", (DL_FUNC) &savvy_native_figure__impl, 7},
    {"savvy_native_fit__impl", (DL_FUNC) &savvy_native_fit__impl, 8},
    {"savvy_native_fit_several__impl", (DL_FUNC) &savvy_native_fit_several__impl, 10},
    {"savvy_native_id_column__impl", (DL_FUNC) &savvy_native_id_column__impl, 2},
    {"savvy_native_id_of_new__impl", (DL_FUNC) &savvy_native_id_of_new__impl, 2},
    {"savvy_native_is_gone__impl", (DL_FUNC) &savvy_native_is_gone__impl, 1},
    {"savvy_native_matches__impl", (DL_FUNC) &savvy_native_matches__impl, 4},
    {"savvy_native_open__impl", (DL_FUNC) &savvy_native_open__impl, 2},
    {"savvy_native_predict__impl", (DL_FUNC) &savvy_native_predict__impl, 6},
    {"savvy_native_refuse_idle__impl", (DL_FUNC) &savvy_native_refuse_idle__impl, 2},
    {"savvy_native_report__impl", (DL_FUNC) &savvy_native_report__impl, 7},
    {"savvy_native_run_of__impl", (DL_FUNC) &savvy_native_run_of__impl, 3},
    {"savvy_native_save__impl", (DL_FUNC) &savvy_native_save__impl, 5},
    {"savvy_native_scenarios__impl", (DL_FUNC) &savvy_native_scenarios__impl, 0},
    {"savvy_native_settings__impl", (DL_FUNC) &savvy_native_settings__impl, 0},
    {"savvy_native_simulate__impl", (DL_FUNC) &savvy_native_simulate__impl, 5},
    {"savvy_native_stage__impl", (DL_FUNC) &savvy_native_stage__impl, 1},
    {"savvy_native_stop__impl", (DL_FUNC) &savvy_native_stop__impl, 1},
    {"savvy_native_style_sheet__impl", (DL_FUNC) &savvy_native_style_sheet__impl, 0},
    {"savvy_native_uses__impl", (DL_FUNC) &savvy_native_uses__impl, 2},
    {"savvy_native_wait__impl", (DL_FUNC) &savvy_native_wait__impl, 2},
    {NULL, NULL, 0}
};

void R_init_dvim(DllInfo *dll) {
    R_registerRoutines(dll, NULL, CallEntries, NULL, NULL);
    R_useDynamicSymbols(dll, FALSE);

    // Functions for initialization, if any.

}
