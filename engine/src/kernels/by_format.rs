//! From a weight type to the kernel of its format.

/// Calls `$run::<Format>` with the arguments, where `Format` is the type of that name in scope for
/// the quantised weight type `$ty`, and with a further generic argument where `$run<argument>` gives
/// one. Every level has its own formats under these names.
macro_rules! by_format {
    ($ty:expr, $run:ident $(<$more:ident>)? ($($args:tt)*)) => {
        match $ty {
            GgmlType::Mxfp4 => $run::<Mxfp4 $(, $more)?>($($args)*),
            GgmlType::Q8_0 => $run::<Q8_0 $(, $more)?>($($args)*),
            GgmlType::Q4_0 => $run::<Q4_0 $(, $more)?>($($args)*),
            GgmlType::Q4_1 => $run::<Q4_1 $(, $more)?>($($args)*),
            GgmlType::Q4K => $run::<Q4K $(, $more)?>($($args)*),
            GgmlType::Q5K => $run::<Q5K $(, $more)?>($($args)*),
            GgmlType::Q6K => $run::<Q6K $(, $more)?>($($args)*),
            GgmlType::F32 | GgmlType::F16 | GgmlType::BF16 => {
                unreachable!("float weights take the float kernels")
            }
        }
    };
}

pub(super) use by_format;
