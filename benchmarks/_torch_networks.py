"""PyTorch and Lightning in a separate process, for `mlp_peers.py` and `convnet.py`: a training for each line read.

python _torch_networks.py bare|lightning network=mlp|digits|mnist steps=N

The networks, batches and optimizer match the other contestants; the data are in tensors. "bare" draws shuffled
rows by hand. "lightning" has a DataLoader over a TensorDataset, and a Trainer without logger, checkpoints and progress.
"""

import logging
import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

#: The side of an image (None: 64 numbers), the batch size and the rows, by network.
DATA = {"mlp": (None, 32, 4096), "digits": (8, 32, 1792), "mnist": (28, 128, 7168)}


def made(network):
    """Returns the model."""
    side = DATA[network][0]
    if side is None:
        return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear((side // 2) ** 2 * 32, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def arrays(network):
    """Returns features and labels."""
    side, _, rows = DATA[network]
    generator = torch.Generator().manual_seed(0)
    shape = (rows, 64) if side is None else (rows, 1, side, side)
    return torch.randn(shape, generator=generator), torch.randint(0, 10, (rows,), generator=generator)


def bare(network, steps):
    """Returns a hand-written loop."""
    _, batch, rows = DATA[network]
    x, y = arrays(network)

    def run():
        model = made(network)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        done = 0
        while done < steps:
            order = torch.randperm(rows)
            for start in range(0, rows - batch + 1, batch):
                if done == steps:
                    break
                at = order[start : start + batch]
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x[at]), y[at]).backward()
                optimizer.step()
                done += 1

    return run


def lightning(network, steps):
    """Returns a training with the Trainer of Lightning."""
    import lightning

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore")
    _, batch, _ = DATA[network]
    dataset = TensorDataset(*arrays(network))

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = made(network)

        def training_step(self, examples, number):
            x, y = examples
            return nn.functional.cross_entropy(self.model(x), y)

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters(), lr=1e-3)

    def run():
        trainer = lightning.Trainer(
            max_steps=steps,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Module(), DataLoader(dataset, batch_size=batch, shuffle=True, drop_last=True))

    return run


def main():
    how, given = sys.argv[1], dict(item.split("=", 1) for item in sys.argv[2:])
    run = {"bare": bare, "lightning": lightning}[how](given["network"], int(given["steps"]))
    torch.set_num_threads(1 if given["network"] == "mlp" else 2)  # the faster number for each network
    for _ in sys.stdin:
        run()
        print("done", flush=True)


if __name__ == "__main__":
    main()
