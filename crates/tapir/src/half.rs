//! Numbers of 16 bits, which files hold and nothing computes with: IEEE's half and bfloat16.
//!
//! The crate `half` does the same, and brings macros that take longer to build than the rest of what
//! this crate depends on.

/// 2^112, the difference between the biases of both exponents.
const REBIAS: f32 = f32::from_bits(0x7780_0000);

/// The f32 of an IEEE half in two bytes, the lower one first.
///
/// ```
/// assert_eq!(tapir::half::from_f16([0x00, 0x3e]), 1.5);
/// ```
#[inline]
pub fn from_f16(bytes: [u8; 2]) -> f32 {
    let bits = u32::from(u16::from_le_bytes(bytes));
    // The multiplication is exact, for numbers below the smallest normal one, too.
    let value = f32::from_bits((bits & 0x7fff) << 13) * REBIAS;
    // An exponent of ones is infinity or NaN; it came out as 2^16 and more.
    let special = if value >= 65536.0 { 0x7f80_0000 } else { 0 };
    f32::from_bits(value.to_bits() | special | (bits & 0x8000) << 16)
}

/// The nearest IEEE half in two bytes, the lower one first: of two that are as near the even one.
/// What is too large becomes infinity.
///
/// ```
/// assert_eq!(tapir::half::to_f16(1.5), [0x00, 0x3e]);
/// ```
#[inline]
pub fn to_f16(value: f32) -> [u8; 2] {
    let sign = (value.to_bits() >> 16) & 0x8000;
    let value = value.abs();
    let bits = value.to_bits();
    let half = if value.is_nan() {
        0x7e00
    } else if value >= 65536.0 {
        0x7c00
    } else if value < f32::from_bits(0x3880_0000) {
        // Below 2^-14, the smallest normal half: in the sum the last bit is 2^-24, that of a half.
        (value + 0.5).to_bits() - 0.5_f32.to_bits()
    } else {
        // Half of the last bit that stays, less one if that bit is even, rounds. A carry runs into
        // the exponent, as it should.
        ((bits + 0xfff + ((bits >> 13) & 1)) >> 13) - (112 << 10)
    };
    ((sign | half) as u16).to_le_bytes()
}

/// The f32 of a bfloat16 in two bytes, the lower one first: its upper half.
///
/// ```
/// assert_eq!(tapir::half::from_bf16([0xc0, 0x3f]), 1.5);
/// ```
#[inline]
pub fn from_bf16(bytes: [u8; 2]) -> f32 {
    f32::from_bits(u32::from(u16::from_le_bytes(bytes)) << 16)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_half_is_read_and_written_as_the_crate_does() {
        for bits in 0..=u16::MAX {
            let bytes = bits.to_le_bytes();
            let (half, brain) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
            if half.is_nan() {
                assert!(from_f16(bytes).is_nan());
                assert!(from_f16(to_f16(from_f16(bytes))).is_nan());
            } else {
                assert_eq!(from_f16(bytes).to_bits(), half.to_f32().to_bits(), "{bits:#06x}");
                assert_eq!(to_f16(from_f16(bytes)), bytes);
            }
            if !brain.is_nan() {
                assert_eq!(from_bf16(bytes).to_bits(), brain.to_f32().to_bits(), "{bits:#06x}");
            }
        }
    }

    #[test]
    fn between_two_halves_the_nearer_one_is_written() {
        for bits in 0..0x7bff_u16 {
            let (low, high) = (from_f16(bits.to_le_bytes()), from_f16((bits + 1).to_le_bytes()));
            let middle = f32::midpoint(low, high);
            for value in [middle, middle.next_down(), middle.next_up(), -middle] {
                assert_eq!(to_f16(value), half::f16::from_f32(value).to_le_bytes(), "{value}");
            }
        }
    }

    proptest! {
        #[test]
        fn any_number_is_written_as_the_crate_does(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(!value.is_nan());
            prop_assert_eq!(to_f16(value), half::f16::from_f32(value).to_le_bytes());
        }
    }
}
