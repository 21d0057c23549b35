"""Two processes: DistributedDataParallel and both kinds of FSDP over gloo, and a forked child.
SPDX-License-Identifier: MIT"""

import gc
import tempfile
import unittest

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

import berlu.torch as bt


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), bt.BerLU(eps=0.5, channels=16), nn.Linear(16, 4), bt.BerLU(eps=0.5))


def batch():
    return torch.randn(12, 8, generator=torch.Generator().manual_seed(2))


def rank(index, kind, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=index, world_size=2)
    torch.set_num_threads(1)
    model = network()
    if kind == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    else:
        from torch.distributed.fsdp import fully_shard

        fully_shard(model)
    model(batch()[index::2]).square().sum().backward()
    whole = [p.grad.full_tensor() if kind == "fsdp" else p.grad for p in model.parameters()]
    torch.save(whole, f"{folder}/{index}.pt")
    with torch.no_grad():
        model.module[1].alpha[3].fill_(-4) if kind == "ddp" else model[1].alpha.fill_(-4)
    assert bt.lipschitz(model).largest == 4
    assert bt.project_(model, "alpha:0.5:2") == 2 and bt.lipschitz(model).largest == 1
    dist.destroy_process_group()


def flat_check(index):
    from torch.distributed.fsdp import FullyShardedDataParallel

    models = [network(), network()]
    optimizers = [torch.optim.SGD(bt.parameter_groups(model, 0.5), 0.01) for model in models]
    models[1] = FullyShardedDataParallel(models[1], device_id=torch.device("cpu"), use_orig_params=True)
    for model, optimizer in zip(models, optimizers):
        for _ in range(2):
            optimizer.zero_grad()
            model(batch()).square().mean().backward()
            optimizer.step()
    check = unittest.TestCase()
    with FullyShardedDataParallel.summon_full_params(models[1]):
        for one, other in zip(*(model.parameters() for model in models)):
            torch.testing.assert_close(one, other)
        check.assertEqual(bt.lipschitz(models[1]).largest, bt.lipschitz(models[0]).largest)
    check.assertRaisesRegex(ValueError, "cannot be told from biases", bt.parameter_groups, models[1])
    if index == 0:  # the other one has every alpha
        check.assertRaisesRegex(ValueError, "a part of alpha only", bt.lipschitz, models[1])


def flat_rank(index, folder):
    """FSDP of the first kind, which hands out parameters without their shapes."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=index, world_size=2)
    torch.set_num_threads(1)
    flat_check(index)
    gc.collect()  # its modules hold the process group, whose threads must have ended when the process does
    dist.destroy_process_group()


def child(queue):
    queue.put(bt.BerLU()(torch.randn(600, 600)).shape)


class Ranks(unittest.TestCase):
    def test_two_ranks_have_the_gradients_of_one_process(self):
        alone = network()
        alone(batch()).square().sum().backward()
        for kind in ("ddp", "fsdp"):
            with self.subTest(kind=kind), tempfile.TemporaryDirectory() as folder:
                mp.spawn(rank, (kind, folder), nprocs=2)
                grads = [torch.load(f"{folder}/{i}.pt", weights_only=True) for i in range(2)]
                for one, two, want in zip(*grads, (p.grad for p in alone.parameters())):
                    self.assertTrue(torch.equal(one, two))
                    torch.testing.assert_close(2 * one, want, rtol=1e-5, atol=1e-5)  # the mean over ranks

    def test_flat_parameters_are_grouped_before_they_are_flat(self):
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(flat_rank, (folder,), nprocs=2)

    def test_a_data_loader_worker_computes(self):
        loader = torch.utils.data.DataLoader(Items(), num_workers=1, timeout=60)
        bt.BerLU()(torch.randn(600, 600))  # the parent has threads before it forks
        self.assertEqual(len(list(loader)), 3)


class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return bt.gelu(torch.randn(300, 300)).sum().item()


if __name__ == "__main__":
    unittest.main()
