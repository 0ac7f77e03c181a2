"""One training step in PyTorch, to set beside `cargo bench -p tapir-train`.

The same work as benches/step.rs of tapir-train: (a) a reviser of 4 layers / 512 / 2048, (b) step 2
with an LSTM of 512 and a controller of 256; 16 sentences of 12 words; (c) an encoder of MiniLM's
sizes, fine-tuned on 32 sentences of 12 pieces. Dropout 0.1, fused AdamW. Needs torch: pip install
torch.
"""

import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

SENTENCES, WORDS, LABELS, VOCABULARY, MEMORY, ROUNDS = 16, 12, 72, 11768, 5, 20


class Reviser(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 300)
        self.projection = nn.Linear(300, 512)
        layer = nn.TransformerEncoderLayer(512, 8, 2048, 0.1, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, nn.LayerNorm(512), enable_nested_tensor=False)
        self.output = nn.Linear(512, LABELS)

    def loss(self, ids, labels, _):
        logits = self.output(self.layers(self.projection(self.embedding(ids))))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.pieces, self.positions = nn.Embedding(30522, 384), nn.Embedding(512, 384)
        self.norm = nn.LayerNorm(384, 1e-12)
        layer = nn.TransformerEncoderLayer(384, 12, 1536, 0.1, "gelu", 1e-12, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 6, enable_nested_tensor=False)
        self.output = nn.Linear(384, LABELS)

    def loss(self, ids, labels, _):
        ids, labels = ids.repeat(2, 1), labels.repeat(2, 1)
        x = self.norm(self.pieces(ids) + self.positions(torch.arange(WORDS)))
        logits = self.output(F.dropout(self.layers(F.dropout(x, 0.1)), 0.1))
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class FirstPass(nn.Module):
    def __init__(self, h=512, c=256):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 300)
        self.lstm = nn.LSTM(300, h, batch_first=True)
        self.output = nn.Linear(h, LABELS)
        self.z, self.phi = nn.Linear(LABELS, h), nn.Linear(2 * h, c)
        self.query, self.summary, self.key = nn.Linear(h, c), nn.Linear(c, c), nn.Linear(c, c)
        self.score, self.gates, self.policy = nn.Linear(c, 1), nn.Linear(c + 300, 4 * c), nn.Linear(c, 1)
        self.c = c

    def loss(self, ids, labels, actions):
        x = F.dropout(self.embedding(ids), 0.1)
        h, _ = self.lstm(x)
        logits = self.output(F.dropout(h, 0.1))
        phi = torch.tanh(self.phi(torch.cat([h, torch.tanh(self.z(logits))], -1)))
        keys, queries = self.key(phi), self.query(h)
        k_summary = torch.zeros(SENTENCES, self.c)
        cells, out = [], []
        for t in range(WORDS):
            c_summary = torch.zeros(SENTENCES, self.c)
            if t:
                window = slice(max(0, t - MEMORY), t)
                u = torch.tanh(queries[:, t, None] + self.summary(k_summary)[:, None] + keys[:, window])
                s = self.score(u).softmax(1)
                k_summary = (s * phi[:, window]).sum(1)
                c_summary = (s * torch.stack(cells[window], 1)).sum(1)
            f, o, i, g = self.gates(torch.cat([k_summary, x[:, t]], -1)).chunk(4, -1)
            cells.append(torch.sigmoid(f) * c_summary + torch.sigmoid(i) * torch.tanh(g))
            out.append(torch.sigmoid(o) * torch.tanh(cells[-1]))
        policy = self.policy(torch.stack(out, 1)).squeeze(-1)
        ce = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return ce + F.binary_cross_entropy_with_logits(policy, actions)


def main():
    if len(sys.argv) > 1:
        torch.set_num_threads(int(sys.argv[1]))
    ids = torch.randint(3, VOCABULARY, (SENTENCES, WORDS))
    labels = torch.randint(0, LABELS, (SENTENCES, WORDS))
    actions = torch.rand(SENTENCES, WORDS).lt(0.2).float()
    models = [
        ("(a) reviser 4/512/2048", Reviser()),
        ("(b) step 2, 512/256", FirstPass()),
        ("(c) encoder 6/384/1536", Encoder()),
    ]
    for name, model in models:
        optimiser = torch.optim.AdamW(model.parameters(), 1e-4, (0.9, 0.98), 1e-9, 0.01, fused=True)
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            optimiser.zero_grad()
            model.loss(ids, labels, actions).backward()
            optimiser.step()
            times.append(time.perf_counter() - start)
        print(f"{name}, torch {torch.__version__}, {torch.get_num_threads()} threads: "
              f"{1e3 * statistics.median(times):.1f} ms")


main()
