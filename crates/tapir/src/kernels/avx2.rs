//! 16 lanes as two registers of AVX2 with FMA, with and without VNNI.

use std::arch::x86_64::{
    __m256, __m256i, _MM_HINT_T1, _mm_add_ps, _mm_add_ss, _mm_cvtss_f32, _mm_loadu_si128,
    _mm_movehl_ps, _mm_prefetch, _mm_shuffle_ps, _mm256_add_epi32, _mm256_add_ps, _mm256_and_ps,
    _mm256_andnot_ps, _mm256_castps_si256, _mm256_castps256_ps128, _mm256_castsi256_ps,
    _mm256_cvtepi8_epi16, _mm256_cvtepi32_ps, _mm256_div_ps, _mm256_dpwssd_avx_epi32,
    _mm256_extractf128_ps, _mm256_fmadd_ps, _mm256_loadu_ps, _mm256_madd_epi16, _mm256_max_ps,
    _mm256_min_ps, _mm256_mul_ps, _mm256_or_ps, _mm256_set1_epi32, _mm256_set1_ps,
    _mm256_setzero_si256, _mm256_slli_epi32, _mm256_storeu_ps, _mm256_sub_ps,
};

use super::isa::Kernel;
use super::pairs::{Pairwise, lines_of_pairs};
use super::simd::{LANES, MOST_ROWS, Simd};

/// Proof that the machine has AVX2 and FMA, and AVX-VNNI too if `VNNI`.
#[derive(Clone, Copy)]
pub(super) struct Avx2<const VNNI: bool>(());

/// Run a kernel, compiled for AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub(super) fn run<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2::<false>(()))
}

/// Run a kernel, compiled for AVX2, FMA and AVX-VNNI.
#[target_feature(enable = "avx2,fma,avxvnni")]
pub(super) fn run_vnni<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2::<true>(()))
}

/// The same as `run`, never inlined.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
fn run_apart<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2::<false>(()))
}

/// The same as `run_vnni`, never inlined.
#[inline(never)]
#[target_feature(enable = "avx2,fma,avxvnni")]
fn run_vnni_apart<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Avx2::<true>(()))
}

/// Safe methods over intrinsics, so that the reason is given once.
macro_rules! intrinsics {
    ($(fn $name:ident$(<$k:ident: $bound:ident>)?($self:ident $(, $arg:ident: $ty:ty)*) $(-> $out:ty)? $body:block)*) => {$(
        #[inline(always)]
        fn $name$(<$k: $bound>)?($self $(, $arg: $ty)*) $(-> $out)? {
            // SAFETY: `self` exists only inside `run` and `run_vnni`, where the instructions are
            // enabled. The only memory touched is that of references, within their lengths.
            unsafe { $body }
        }
    )*};
}

/// The sum of eight lanes: 4 + 4, 2 + 2, 1 + 1.
#[inline]
#[target_feature(enable = "avx")]
pub(super) fn sum8(v: __m256) -> f32 {
    let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
    _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps::<1>(v, v)))
}

impl<const VNNI: bool> Simd for Avx2<VNNI> {
    type F32 = [__m256; 2];
    type I32 = [__m256i; 2];

    // 16 registers: up to 12 sums of eight lanes, and what is multiplied. Three rows times two
    // panels of f32 would spill.
    const PANELS: [usize; MOST_ROWS] = [4, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0];
    const PANELS_INT8: [usize; MOST_ROWS] = [4, 2, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0];

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::F32 {
        // SAFETY: the caller gives 16 readable f32.
        unsafe { [_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))] }
    }

    lines_of_pairs! {}

    intrinsics! {
        fn splat(self, value: f32) -> Self::F32 { [_mm256_set1_ps(value); 2] }
        fn store(self, v: Self::F32, to: &mut [f32; LANES]) {
            let to = to.as_mut_ptr();
            _mm256_storeu_ps(to, v[0]);
            _mm256_storeu_ps(to.add(8), v[1]);
        }
        fn add(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])]
        }
        fn sub(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])]
        }
        fn mul(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])]
        }
        fn div(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])]
        }
        fn fma(self, a: Self::F32, b: Self::F32, c: Self::F32) -> Self::F32 {
            [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])]
        }
        fn max(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            [_mm256_max_ps(a[0], b[0]), _mm256_max_ps(a[1], b[1])]
        }
        fn min(self, a: Self::F32, b: Self::F32) -> Self::F32 {
            [_mm256_min_ps(a[0], b[0]), _mm256_min_ps(a[1], b[1])]
        }
        fn abs(self, v: Self::F32) -> Self::F32 {
            let sign = _mm256_set1_ps(-0.0);
            [_mm256_andnot_ps(sign, v[0]), _mm256_andnot_ps(sign, v[1])]
        }
        fn with_sign(self, v: Self::F32, sign: Self::F32) -> Self::F32 {
            let mask = _mm256_set1_ps(-0.0);
            [
                _mm256_or_ps(v[0], _mm256_and_ps(mask, sign[0])),
                _mm256_or_ps(v[1], _mm256_and_ps(mask, sign[1])),
            ]
        }
        fn pow2(self, n: Self::F32) -> Self::F32 {
            // Adding 1.5 * 2^23 leaves n in the low bits; shifting drops all but n and the bias.
            let round = _mm256_set1_ps(12_582_912.0);
            let bias = _mm256_set1_epi32(127);
            let low = _mm256_add_epi32(_mm256_castps_si256(_mm256_add_ps(n[0], round)), bias);
            let high = _mm256_add_epi32(_mm256_castps_si256(_mm256_add_ps(n[1], round)), bias);
            [
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(low)),
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(high)),
            ]
        }
        fn sum(self, v: Self::F32) -> f32 { sum8(_mm256_add_ps(v[0], v[1])) }
        fn zero_i32(self) -> Self::I32 { [_mm256_setzero_si256(); 2] }
        fn to_f32(self, v: Self::I32) -> Self::F32 {
            [_mm256_cvtepi32_ps(v[0]), _mm256_cvtepi32_ps(v[1])]
        }
        fn apart<K: Kernel>(self, kernel: K) -> K::Output {
            if VNNI { run_vnni_apart(kernel) } else { run_apart(kernel) }
        }
        fn prefetch(self, address: *const u8) { _mm_prefetch::<_MM_HINT_T1>(address.cast()); }
    }
}

impl<const VNNI: bool> Pairwise for Avx2<VNNI> {
    type Pairs = [__m256i; 2];

    #[inline(always)]
    unsafe fn load_pairs(self, from: *const i8) -> Self::Pairs {
        // SAFETY: the caller gives 32 readable bytes.
        unsafe {
            [
                _mm256_cvtepi8_epi16(_mm_loadu_si128(from.cast())),
                _mm256_cvtepi8_epi16(_mm_loadu_si128(from.add(16).cast())),
            ]
        }
    }

    #[inline(always)]
    unsafe fn splat_pair(self, from: *const [i16; 2]) -> Self::Pairs {
        // SAFETY: the caller gives a readable pair.
        unsafe { [_mm256_set1_epi32(from.cast::<i32>().read_unaligned()); 2] }
    }

    intrinsics! {
        fn dot_pairs(self, acc: Self::I32, a: Self::Pairs, b: Self::Pairs) -> Self::I32 {
            if VNNI {
                [
                    _mm256_dpwssd_avx_epi32(acc[0], a[0], b[0]),
                    _mm256_dpwssd_avx_epi32(acc[1], a[1], b[1]),
                ]
            } else {
                [
                    _mm256_add_epi32(acc[0], _mm256_madd_epi16(a[0], b[0])),
                    _mm256_add_epi32(acc[1], _mm256_madd_epi16(a[1], b[1])),
                ]
            }
        }
    }
}
