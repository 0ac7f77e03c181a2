//! Logistic regression by Newton's method, for a handful of features.

/// Keeps the weights finite where an outcome never varies.
const RIDGE: f64 = 0.01;

/// Fits σ(w · x) to outcomes.
pub(crate) fn fit<const N: usize>(features: &[[f32; N]], outcomes: &[bool]) -> [f32; N] {
    let mut weights = [0.0; N];
    for _ in 0..100 {
        // Gradient and Hessian of the loss: Σ (p − y) x and Σ p (1 − p) x xᵀ, and the ridge's.
        let (mut gradient, mut hessian) = ([0.0; N], [[0.0; N]; N]);
        for (x, y) in features.iter().zip(outcomes) {
            let x = x.map(f64::from);
            let z: f64 = weights.iter().zip(&x).map(|(w, x)| w * x).sum();
            let p = 1.0 / (1.0 + (-z).exp());
            let (error, curve) = (p - f64::from(u8::from(*y)), p * (1.0 - p));
            for i in 0..N {
                gradient[i] += error * x[i];
                for j in 0..=i {
                    hessian[i][j] += curve * x[i] * x[j];
                }
            }
        }
        for i in 0..N {
            gradient[i] += RIDGE * weights[i];
            hessian[i][i] += RIDGE;
        }
        let step = solve(hessian, gradient);
        let mut greatest: f64 = 0.0;
        for (weight, step) in weights.iter_mut().zip(step) {
            *weight -= step;
            greatest = greatest.max(step.abs());
        }
        if greatest < 1e-6 {
            break;
        }
    }
    weights.map(|weight| weight as f32)
}

/// Solves A x = b for a positive definite A, of which the lower half is given: Cholesky's.
fn solve<const N: usize>(mut a: [[f64; N]; N], mut b: [f64; N]) -> [f64; N] {
    for i in 0..N {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| a[i][k] * a[j][k]).sum();
            let rest = a[i][j] - dot;
            a[i][j] = if i == j { rest.max(f64::MIN_POSITIVE).sqrt() } else { rest / a[j][j] };
        }
        let dot: f64 = (0..i).map(|k| a[i][k] * b[k]).sum();
        b[i] = (b[i] - dot) / a[i][i];
    }
    for i in (0..N).rev() {
        let dot: f64 = (i + 1..N).map(|k| a[k][i] * b[k]).sum();
        b[i] = (b[i] - dot) / a[i][i];
    }
    b
}

#[cfg(test)]
mod tests {
    use tapir_data::Random;

    use super::*;

    #[test]
    fn equations_are_solved() {
        let a = [[4.0, 0.0, 0.0], [1.0, 3.0, 0.0], [0.5, -1.0, 5.0]];
        let full = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]];
        let x = solve(a, [1.0, 2.0, 3.0]);
        for (row, b) in full.iter().zip([1.0, 2.0, 3.0]) {
            let product: f64 = row.iter().zip(&x).map(|(a, x)| a * x).sum();
            assert!((product - b).abs() < 1e-12);
        }
    }

    #[test]
    fn the_weights_that_made_the_outcomes_are_found() {
        let mut random = Random::new(3);
        let (mut features, mut outcomes) = (Vec::new(), Vec::new());
        for _ in 0..20_000 {
            let x = [1.0, 4.0 * random.unit() as f32 - 2.0];
            let p = 1.0 / (1.0 + (-(0.5 + 1.5 * x[1])).exp());
            features.push(x);
            outcomes.push(random.unit() < f64::from(p));
        }
        let [bias, slope] = fit(&features, &outcomes);
        assert!((bias - 0.5).abs() < 0.1 && (slope - 1.5).abs() < 0.1, "{bias} and {slope}");
    }

    #[test]
    fn an_outcome_that_never_varies_leaves_the_weights_finite() {
        let [bias] = fit(&[[1.0]; 1000], &[true; 1000]);
        assert!(bias.is_finite() && bias > 5.0, "{bias}");
    }
}
