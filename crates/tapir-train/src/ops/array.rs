//! A matrix on the host.

use burn::backend::Flex;
use burn::backend::flex::FlexTensor;
use burn::backend::ops::FloatTensorOps;
use burn::tensor::TensorData;

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
        Flex::float_matmul(self.tensor.clone(), other.tensor.clone()).into()
    }

    /// a bᵀ
    pub(crate) fn times_transposed(&self, other: &Self) -> Self {
        Flex::float_matmul(self.tensor.clone(), Flex::float_transpose(other.tensor.clone())).into()
    }

    /// aᵀ b
    pub(crate) fn transposed_times(&self, other: &Self) -> Self {
        Flex::float_matmul(Flex::float_transpose(self.tensor.clone()), other.tensor.clone()).into()
    }
}
