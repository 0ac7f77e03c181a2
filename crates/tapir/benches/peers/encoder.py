"""A pretrained encoder's work in PyTorch, to set beside `cargo bench -p tapir --bench engine`.

An encoder of MiniLM's sizes (6 layers of 384 / 1536, 12 heads, 30,522 pieces) labels sentences of
nine words restart-incrementally: every prefix is computed anew, between [CLS] and [SEP], on one
thread. Prints the seconds of five sentences. Needs torch: pip install torch.
"""

import statistics
import time

import torch
from torch import nn

PIECES, POSITIONS, HIDDEN, LABELS, WORDS, SENTENCES, ROUNDS = 30522, 512, 384, 73, 9, 5, 15


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.pieces = nn.Embedding(PIECES, HIDDEN)
        self.positions = nn.Embedding(POSITIONS, HIDDEN)
        self.norm = nn.LayerNorm(HIDDEN, 1e-12)
        layer = nn.TransformerEncoderLayer(HIDDEN, 12, 1536, 0.1, "gelu", 1e-12, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.output = nn.Linear(HIDDEN, LABELS)

    def forward(self, ids):
        x = self.norm(self.pieces(ids) + self.positions(torch.arange(ids.shape[1])))
        return self.output(self.layers(x)[:, 1:-1])


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = Encoder().eval()
    sentences = torch.randint(999, PIECES, (SENTENCES, WORDS))
    cls, sep = torch.tensor([101]), torch.tensor([102])
    times = []
    with torch.inference_mode():
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for words in sentences:
                for end in range(1, WORDS + 1):
                    model(torch.cat([cls, words[:end], sep])[None]).argmax(-1).tolist()
            times.append(time.perf_counter() - start)
    print(f"{statistics.median(times)} torch {torch.__version__}")


main()
