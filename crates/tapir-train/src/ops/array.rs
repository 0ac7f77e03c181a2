//! A matrix on the host.

use burn::backend::flex::FlexTensor;
use burn::tensor::TensorData;
use gemm::{Parallelism, gemm};

/// Products of fewer multiplications stay on one thread.
const PARALLEL: usize = 192 * 192 * 192;

/// Rows of f32, contiguous. Cloning shares them.
#[derive(Clone, Debug)]
pub(crate) struct Array {
    tensor: FlexTensor,
    rows: usize,
    cols: usize,
}

impl From<FlexTensor> for Array {
    fn from(tensor: FlexTensor) -> Self {
        let contiguous = tensor.is_contiguous() && tensor.layout().start_offset() == 0;
        let tensor = if contiguous { tensor } else { tensor.to_contiguous() };
        let shape = tensor.layout().shape();
        let (rows, cols) = (shape[0], shape[1]);
        Self { tensor, rows, cols }
    }
}

impl From<Array> for FlexTensor {
    fn from(array: Array) -> Self {
        array.tensor
    }
}

impl Array {
    pub(crate) fn new(data: Vec<f32>, rows: usize, cols: usize) -> Self {
        Self { tensor: FlexTensor::from_data(TensorData::new(data, [rows, cols])), rows, cols }
    }

    pub(crate) fn zeros(rows: usize, cols: usize) -> Self {
        Self::new(vec![0.0; rows * cols], rows, cols)
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// All values, row by row.
    pub(crate) fn data(&self) -> &[f32] {
        &self.tensor.storage::<f32>()[..self.rows * self.cols]
    }

    /// a b
    pub(crate) fn times(&self, other: &Self) -> Self {
        product(self.plain(), other.plain(), None)
    }

    /// a b + c, c being added to each row.
    pub(crate) fn times_plus(&self, other: &Self, row: &[f32]) -> Self {
        product(self.plain(), other.plain(), Some(row))
    }

    /// aᵀ itself. Where a recurrence takes a product with it at every step, turn it once.
    pub(crate) fn transpose(&self) -> Self {
        const BLOCK: usize = 16;
        let (data, rows, cols) = (self.data(), self.rows, self.cols);
        let mut out = vec![0.0; rows * cols];
        for top in (0..rows).step_by(BLOCK) {
            for left in (0..cols).step_by(BLOCK) {
                for j in left..(left + BLOCK).min(cols) {
                    let (from, to) = (top * cols + j, j * rows + top);
                    let column = data[from..].iter().step_by(cols);
                    out[to..to + BLOCK.min(rows - top)]
                        .iter_mut()
                        .zip(column)
                        .for_each(|(out, value)| *out = *value);
                }
            }
        }
        Self::new(out, cols, rows)
    }

    /// a bᵀ
    ///
    /// A product turns its right matrix before it multiplies, where it is to be read by columns. For
    /// the gradient of a few rows that takes longer than the product: (b aᵀ)ᵀ turns those rows
    /// instead, and what comes out.
    pub(crate) fn times_transposed(&self, other: &Self) -> Self {
        if self.rows * (self.cols + other.rows) < other.rows * other.cols {
            return other.times(&self.transpose()).transpose();
        }
        product(self.plain(), other.transposed(), None)
    }

    /// aᵀ b
    pub(crate) fn transposed_times(&self, other: &Self) -> Self {
        product(self.transposed(), other.plain(), None)
    }

    fn plain(&self) -> View<'_> {
        View {
            data: self.data(),
            rows: self.rows,
            cols: self.cols,
            row_stride: self.cols,
            col_stride: 1,
        }
    }

    fn transposed(&self) -> View<'_> {
        View {
            data: self.data(),
            rows: self.cols,
            cols: self.rows,
            row_stride: 1,
            col_stride: self.cols,
        }
    }
}

/// An [`Array`] as a product reads it. Its strides reach all of `data` and nothing else.
struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

/// a b, plus a row where there is one. The output's memory is neither cleared nor copied.
fn product(a: View, b: View, row: Option<&[f32]>) -> Array {
    let (m, n, k) = (a.rows, b.cols, a.cols);
    assert_eq!(k, b.rows, "a [{m}, {k}] times a [{}, {n}]", b.rows);
    let mut out = match row {
        Some(row) => row.repeat(m),
        // Without a term there is nothing that the product would write.
        None if k == 0 => vec![0.0; m * n],
        None => Vec::with_capacity(m * n),
    };
    let read = row.is_some() || k == 0;
    assert!(
        !read || out.len() == m * n,
        "a row of {} for {n} columns",
        row.map_or(0, <[f32]>::len)
    );
    let threads = if m * n * k >= PARALLEL { Parallelism::Rayon(0) } else { Parallelism::None };
    // SAFETY: the views reach all of their slices and no further; `out` has room for [m, n], which
    // is written whole, and is read only where it was filled before.
    #[allow(unsafe_code)]
    unsafe {
        gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            read,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            threads,
        );
        out.set_len(m * n);
    }
    Array::new(out, m, n)
}

#[cfg(test)]
mod tests {
    use super::Array;

    fn array(rows: usize, cols: usize) -> Array {
        let value = |i: usize| ((i * 7 + rows) % 11) as f32 - 5.0;
        Array::new((0..rows * cols).map(value).collect(), rows, cols)
    }

    fn at(array: &Array, row: usize, col: usize) -> f32 {
        array.data()[row * array.cols() + col]
    }

    /// Small integers: every order of summation gives the same.
    #[test]
    #[allow(clippy::float_cmp)]
    fn products_are_sums_of_products() {
        for (m, k, n) in [(1, 1, 1), (3, 5, 2), (17, 33, 70), (2, 0, 3)] {
            let (a, b) = (array(m, k), array(k, n));
            let (a_t, b_t) = (array(k, m), array(n, k));
            let row: Vec<f32> = (0..n).map(|j| j as f32).collect();
            for i in 0..m {
                for j in 0..n {
                    let sum = |f: &dyn Fn(usize) -> f32| (0..k).map(f).sum::<f32>();
                    let plain = sum(&|l| at(&a, i, l) * at(&b, l, j));
                    assert_eq!(at(&a.times(&b), i, j), plain);
                    assert_eq!(at(&a.times_plus(&b, &row), i, j), plain + row[j]);
                    let right = sum(&|l| at(&a, i, l) * at(&b_t, j, l));
                    assert_eq!(at(&a.times_transposed(&b_t), i, j), right);
                    assert_eq!(at(&a.times(&b_t.transpose()), i, j), right);
                    let left = sum(&|l| at(&a_t, l, i) * at(&b, l, j));
                    assert_eq!(at(&a_t.transposed_times(&b), i, j), left);
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "a [2, 3] times a [4, 5]")]
    fn sizes_must_fit() {
        array(2, 3).times(&array(4, 5));
    }
}
