//! GELU, in the two forms that pretrained encoders use.

use tapir::kernels;

use super::{Array, Function};

#[derive(Clone, Debug)]
pub(super) struct Gelu {
    /// Φ approximated by a hyperbolic tangent?
    pub(super) tanh: bool,
}

impl Function<1> for Gelu {
    /// What went in, and what came out.
    type Saved = [Array; 2];

    fn forward(&self, [x]: [Array; 1]) -> (Array, Self::Saved) {
        let mut y = x.data().to_vec();
        if self.tanh {
            kernels::gelu_tanh(&mut y);
        } else {
            kernels::gelu(&mut y);
        }
        let y = Array::new(y, x.rows(), x.cols());
        (y.clone(), [x, y])
    }

    fn backward(&self, [x, y]: Self::Saved, grad: Array) -> [Array; 1] {
        let mut d_x = if self.tanh { tanh_slope(&x) } else { slope(&x, &y) };
        d_x.iter_mut().zip(grad.data()).for_each(|(d, g)| *d *= g);
        [Array::new(d_x, x.rows(), x.cols())]
    }
}

/// Φ(x) + x φ(x), φ(x) = e^(-x²/2) / √(2π).
fn slope(x: &Array, y: &Array) -> Vec<f32> {
    const ROOT: f32 = 0.398_942_3; // 1 / √(2π)
    // e^-z is 1 / σ(z) - 1.
    let mut slope: Vec<f32> = x.data().iter().map(|x| x * x / 2.0).collect();
    kernels::sigmoid(&mut slope);
    for ((slope, x), y) in slope.iter_mut().zip(x.data()).zip(y.data()) {
        let density = ROOT * (1.0 / *slope - 1.0);
        // Φ(x) is y / x, and near 0 its own tangent.
        let below = if x.abs() < 1e-3 { 0.5 + ROOT * x } else { y / x };
        *slope = below + x * density;
    }
    slope
}

/// s + x s (1 - s) 2u', s = σ(2u), u = √(2/π) (x + 0.044715 x³).
fn tanh_slope(x: &Array) -> Vec<f32> {
    const TWICE: f32 = 1.595_769; // 2 √(2/π)
    const CUBE: f32 = 0.044_715;
    let mut slope: Vec<f32> = x.data().iter().map(|x| TWICE * (x + CUBE * x * x * x)).collect();
    kernels::sigmoid(&mut slope);
    for (slope, x) in slope.iter_mut().zip(x.data()) {
        let s = *slope;
        *slope = s + x * s * (1.0 - s) * TWICE * (1.0 + 3.0 * CUBE * x * x);
    }
    slope
}
