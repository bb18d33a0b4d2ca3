"""Faults in what all operators share, such as transformations, forms and devices."""

from tests.mutants.fault import faults

DERIVATIVES = "test_transforms.py::test_derivatives"
EXPLICIT_AXES = "test_sharding.py::test_explicit_axes"
EXPLICIT_AXES_SAY_WHAT_THEY = (
    "test_sharding.py::test_explicit_axes_say_what_they_cannot_do"
)

FAULTS = (
    *faults(
        "dmljax._primitive",
        (
            "test_transforms.py",
            "test_operators.py",
            "test_errors.py",
            "test_lowering.py",
        ),
        (
            "jnp.moveaxis(operand, dim, 0)",
            "operand",
            "the batch stays where it is",
            "test_transforms.py::test_vmap_of_one_operand_along_every_axis",
        ),
        (
            "all(isinstance(tangent, ad.Zero)",
            "any(isinstance(tangent, ad.Zero)",
            "the derivative in one operand alone is zero",
            f"{DERIVATIVES}[diagonal_matrix1-band-float32]",
            "test_transforms.py::test_gradient_and_hessian",
        ),
        (
            "platform_of_kernel in self.kernels,",
            "True,",
            "an operator without a kernel takes one",
            "test_errors.py::test_a_kernel_that_is_not_there",
        ),
        (
            '(None, "xla", "pallas")',
            '(None, "xla", "pallas", "cuda")',
            "there is one more implementation",
            "test_errors.py::test_unknown_implementations",
        ),
        (
            "for array in operands + outputs) >= least",
            "for array in operands + outputs) > least",
            "the smallest array of the rule is not the kernel's",
            "test_lowering.py::test_the_rule_looks_at_type_and_size",
        ),
        (
            "interpret or kernels_available(platform),",
            "True,",
            "a kernel is the default without its backend",
            "test_lowering.py::test_without_the_backend_the_default_is_xla",
        ),
        (
            "interpret or served(platform, LEAST_CAPABILITY),",
            "True,",
            "a kernel runs on a GPU that it does not serve",
            "test_lowering.py::test_old_gpus_run_a_kernel_only_if_it_is_asked_for",
        ),
        (
            "served(platform, LEAST_BY_DEFAULT)",
            "served(platform, (0, 0))",
            "a kernel is the default on a GPU that it was never run on",
            "test_lowering.py::test_a_gpu_that_no_kernel_was_run_on_has_xla_by_default",
        ),
        (
            "if not measured or not is_local(context) or",
            "if not measured or",
            "a kernel is the default in a program for many devices",
            (
                "test_lowering.py::test_a_sharded_program_runs_kernels_where_the"
                "_types_say_how"
            ),
        ),
        (
            "contextlib.suppress(NoKernelError)",
            "contextlib.suppress()",
            "what only a kernel cannot do is an error",
            "test_lowering.py::test_without_the_backend_the_default_is_xla",
        ),
        (
            'interpret = platform == "cpu"',
            'interpret = platform in ("cpu", "cuda")',
            "a GPU runs Pallas' interpreter",
            (
                "test_lowering.py::test_kernels_are_lowered_for_cuda[element_wis"
                "e_if-float32]"
            ),
        ),
        (
            'interpret = platform == "cpu"',
            'interpret = platform in (OTHER, "cpu")',
            "a kernel is interpreted on a platform without one",
            "test_lowering.py::test_other_platforms_have_no_kernel",
        ),
        (
            '_has_known_sizes(context),\n            "impl',
            'True,\n            "impl',
            "a kernel takes symbolic sizes",
            "test_export.py::test_a_kernel_needs_numbers",
        ),
        (
            'is_local(context),\n            f"impl',
            'True,\n            f"impl',
            "a kernel may be asked for in a program that XLA divides",
            (
                "test_sharding.py::test_a_kernel_that_xla_would_have_to_divide_i"
                "s_refused"
            ),
        ),
        (
            "self.divisible or self.xla, multiple",
            "self.xla, multiple",
            "a program for several devices has a form that XLA cannot divide",
            "test_sharding.py::test_automatic_axes[EDGE, narrow-8-",
        ),
    ),
    *faults(
        "dmljax._sharding",
        (
            "test_sharding.py",
            "test_bounds.py",
            "test_transforms.py",
        ),
        (
            "np.argsort(parts.transpose(list(map(names.index, ordered))).ravel())",
            "np.arange(count)",
            "devices have the numbers of their parts",
            "test_sharding.py::test_explicit_axes_in_the_order_of_the_mesh_and_in_another",
        ),
        (
            "tuple(axis for axis in self.mesh if axis in names)",
            "names",
            "ppermute gets the axes in another order than the mesh's",
            "test_sharding.py::test_explicit_axes_in_the_order_of_the_mesh_and_in_another",
        ),
        (
            "(int(devices[i]), int(devices[(i + distance) % count]))",
            "(i, (i - distance) % count)",
            "parts are sent the other way",
            f"{EXPLICIT_AXES}[WRAP, narrow",
        ),
        (
            "cyclic or 0 <= i + distance < count",
            "cyclic or 0 < i + distance < count",
            "nothing is sent to the first part",
            f"{EXPLICIT_AXES}[EDGE, narrow",
        ),
        (
            "tuple(size // n for size, n",
            "tuple(size for size, n",
            "a part of an output has the sizes of the whole",
            f"{EXPLICIT_AXES}[diagonal_matrix1",
        ),
        (
            "_name(i) if size != 1 else",
            "_name(i) if True else",
            "what is shared is divided like the rest",
            (
                "test_sharding.py::test_explicit_axes_run_kernels_on_each_part[d"
                "iagonal_matrix1]"
            ),
            "test_sharding.py::test_explicit_axes_run_kernels_on_each_part",
        ),
        (
            "entry if isinstance(entry, tuple) else (entry,)",
            "entry[:1] if isinstance(entry, tuple) else (entry,)",
            "only the first of two mesh axes divides a dimension",
            f"{EXPLICIT_AXES}[CONSTANT, narrow-2x4-P(('a', 'b')",
        ),
        (
            "if name in division.layout.whole:",
            "if False:",
            "what has to be whole is divided",
            f"{EXPLICIT_AXES}[nonzero_coordinates-2x4",
        ),
        (
            "names[len(operands) :]",
            "names[-1:]",
            "the first of two outputs has no names",
            f"{EXPLICIT_AXES}[nonzero_coordinates, vmap",
        ),
        (
            "jax.reshard(operand, NamedSharding(mesh, spec))",
            "operand",
            "what has to be whole is not gathered",
            f"{EXPLICIT_AXES}[nonzero_coordinates-2x4",
        ),
        (
            "lax.axis_index(self.mesh_axes(dimension))",
            "lax.axis_index(self.mesh_axes(dimension)[::-1])",
            "mesh axes have the wrong order",
            f"{EXPLICIT_AXES}[EDGE, narrow-2x4-P(('a', 'b')",
        ),
        (
            "axes[name] == mesh_axes and others",
            "others",
            "two operands may be divided over different mesh axes",
            EXPLICIT_AXES_SAY_WHAT_THEY,
        ),
        (
            "axes[name] == mesh_axes and others.isdisjoint(mesh_axes)",
            "axes[name] == mesh_axes",
            "an explicit axis divides two dimensions",
            EXPLICIT_AXES_SAY_WHAT_THEY,
        ),
        (
            "            size % parts == 0,\n            f",
            "            True,\n            f",
            "explicit parts may be uneven",
            EXPLICIT_AXES_SAY_WHAT_THEY,
        ),
        (
            "_parts(dict(sharding.mesh.shape), divided.get(_name(dimension), ()))",
            "1",
            "parts= does not see the devices",
            f"{EXPLICIT_AXES}[nonzero_coordinates, parts]",
            EXPLICIT_AXES_SAY_WHAT_THEY,
        ),
    ),
    *faults(
        "dmljax._jax",
        (
            "test_lowering.py",
            "test_undocumented.py",
            "test_experimental.py",
            "test_export.py",
        ),
        (
            "return kinds >= {AxisType.Manual, AxisType.Auto}",
            "return False",
            "the advice for a part of the mesh's axes is the usual one",
            "test_sharding.py::test_a_kernel_in_a_shard_map_over_some_axes_is_refused",
        ),
        (
            '.startswith(f"{error.name}."):',
            '.startswith(""):',
            "a module that lacks another is taken to be missing",
            "test_undocumented.py::test_a_module_that_lacks_another_is_an_error",
        ),
        (
            "_trace_state() == _TOP_LEVEL",
            "_trace_state() != _TOP_LEVEL",
            "a call in a program is taken for a program of its own",
            "test_lowering.py::test_a_call_knows_whether_it_is_a_program_of_its_own",
        ),
        (
            "if everywhere - own\n",
            "if False\n",
            "what is the same on all devices has no sum over them",
            "test_transforms.py::test_gradient_of_shard_map",
        ),
        (
            "AxisType.Auto not in types and not divided",
            "not divided",
            "an array on automatic axes is taken for whole",
            (
                "test_lowering.py::test_a_sharded_program_runs_kernels_where_the"
                "_types_say_how"
            ),
            "test_tpu_lowering.py::test_a_sharded_program_leaves_partitioning_to_xla",
        ),
        (
            "manual_axis_type=axes)",
            "manual_axis_type=None)",
            "the output of a kernel is the same on all devices",
            "test_tpu_lowering.py::test_each_device_of_a_shard_map_runs_the_kernel",
        ),
        (
            '_read("devices", context) == 1',
            "False",
            "no program is for one device",
            (
                "test_lowering.py::test_kernels_are_lowered_for_cuda[element_wis"
                "e_if-float32]"
            ),
        ),
        (
            "return bool(types) and",
            "return",
            "a program for several devices is taken for one of its parts",
            (
                "test_sharding.py::test_a_kernel_that_xla_would_have_to_divide_i"
                "s_refused"
            ),
        ),
        (
            '_read("export", context) is True',
            "False",
            "an exported program has a kernel",
            "test_export.py::test_a_plain_export_has_no_kernel",
        ),
        (
            "if _MISSING in (register, result):",
            "if False:",
            "a JAX without rooflines is an error",
            "test_undocumented.py::test_rules_without",
        ),
        (
            "rules[primitive] = taylor",
            "pass",
            "there are no Taylor series",
            "test_experimental.py::test_taylor_series",
        ),
        (
            "arrays = [*context.avals_in, *context.avals_out]\n        return",
            "arrays = [*context.avals_in]\n        return",
            "the bytes of outputs are not counted",
            "test_experimental.py::test_bytes",
        ),
        (
            "if any(_varying(array) for array in arrays):",
            "if True:",
            "a JAX without replace runs nothing",
            "test_undocumented.py::test_the_same_without[replace]",
        ),
        (
            'if f"{name}.".startswith(f"{error.name}."):',
            "if not error.name:",
            "a module that JAX does not have is an error",
            "test_undocumented.py::test_a_module_that_jax_does_not_have",
        ),
    ),
    *faults(
        "dmljax._transpose",
        ("test_transforms.py",),
        (
            '{"implementation": "xla"} if shared',
            '{"implementation": "xla"} if not shared',
            "what is selected for a gradient is not the kernel's",
            "test_lowering.py::test_gradients_of_batches_run_the_kernel",
        ),
        (
            "[(cotangent, zero), (zero, cotangent)]",
            "[(zero, cotangent), (cotangent, zero)]",
            "the cotangents of a select change places",
            f"{DERIVATIVES}[element_wise_if-bytes-float32]",
        ),
        (
            "shared = [i for i, n in enumerate(shape) if n != cotangent.shape[i]]",
            "shared = [i for i, n in enumerate(shape) if n == 1][:1]",
            "the gradient of what is shared is summed along one axis",
            f"{DERIVATIVES}[diagonal_matrix1-band-float32]",
        ),
    ),
)
