"""The loop through its public door: same numbers however a batch is divided, limits, bad numbers, wrong folders."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.errors import InputError, WorkError
from regard.tasks.start import train
from regard.tasks.translate import TranslateJob
from regard.training.checkpoint import CHECKPOINTS, KEPT
from regard.training.journal import read_journal
from regard.training.loop import PATIENCE_WITH_NUMBERS


def numbers(folder, name):
    return [event[name] for event in read_journal(folder) if event["event"] == "step"]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return tmp_path_factory.mktemp("alone") / "run"


@pytest.fixture
def one_process(alone, recipe):
    """Without dropout, in one part and one process."""
    if not alone.exists():
        train(recipe(**with_dropout_off(recipe)), alone)
    return alone


def with_dropout_off(recipe):
    plain = recipe().model
    sizes = {name: getattr(plain, name) for name in ("d_model", "heads", "d_ff", "encoder_layers", "decoder_layers")}
    return {"model": {**sizes, "dropout": 0.0}}


def test_accumulated_is_the_whole_batch(one_process, recipe, tmp_path):
    train(recipe(training={"accumulate": 3}, **with_dropout_off(recipe)), tmp_path)
    assert numbers(tmp_path, "loss") == pytest.approx(numbers(one_process, "loss"), rel=1e-5)
    assert numbers(tmp_path, "gradient") == pytest.approx(numbers(one_process, "gradient"), rel=1e-4)
    assert numbers(tmp_path, "tokens") == numbers(one_process, "tokens")


def test_few_checkpoints_stay(one_process):
    names = sorted(path.name for path in (one_process / CHECKPOINTS).iterdir())
    assert len(names) == KEPT
    assert all(name.startswith("step-00000012") for name in names)  # the last validation's, and the finished run's


class Spoilt:
    """The job's loss, not a number at some updates."""

    def __init__(self, monkeypatch, calls):
        kept, self.count = TranslateJob.loss, 0

        def loss(job, batch):
            total, plain = kept(job, batch)
            if not job.model.training:
                return total, plain
            self.count += 1
            return (total * float("nan"), plain) if self.count in calls else (total, plain)

        monkeypatch.setattr(TranslateJob, "loss", loss)


def test_an_update_that_is_no_number_is_left_out(recipe, tmp_path, monkeypatch):
    Spoilt(monkeypatch, {2, 5, 6})
    progress = train(recipe(), tmp_path)
    assert progress.finished
    assert progress.skipped == 0
    events = [event for event in read_journal(tmp_path) if event["event"] in ("step", "skipped")]
    assert [event["step"] for event in events if event["event"] == "skipped"] == [2, 5, 6]
    assert [event["gradient"] for event in events if event["event"] == "skipped"] == ["nan"] * 3
    assert [event["step"] for event in events] == list(range(1, 13))


def test_too_many_of_them_stop_the_run_with_advice(recipe, tmp_path, monkeypatch):
    Spoilt(monkeypatch, range(3, 100))
    said = rf"for {PATIENCE_WITH_NUMBERS} updates in a row \(up to update 12\); take a lower training.learning_rate"
    with pytest.raises(WorkError, match=said):
        train(recipe(training={"steps": 50}), tmp_path)
    assert read_journal(tmp_path)[-1]["event"] == "stopped"
    assert torch.isfinite(next(iter(weights_of(tmp_path).values()))).all()


def weights_of(folder):
    from regard.runs import read_weights

    return read_weights(folder / "model.safetensors")


def test_another_recipe_in_the_same_folder_is_refused(recipe, tmp_path):
    train(recipe(training={"steps": 1}), tmp_path)
    kept = (tmp_path / "recipe.toml").read_bytes()
    with pytest.raises(InputError, match=r"holds a run of another recipe \(it differs in learning_rate, seed\)"):
        train(recipe(training={"seed": 2, "learning_rate": 0.5}), tmp_path)
    assert (tmp_path / "recipe.toml").read_bytes() == kept


def test_patience_ends_a_run_that_gets_no_better(recipe, tmp_path, monkeypatch):
    scores = iter([1.0, 3.0, 2.0, 3.0, 9.0])
    monkeypatch.setattr(TranslateJob, "validate", lambda job: {"bleu": next(scores)})
    progress = train(recipe(training={"steps": 100, "valid_every": 2, "patience": 2}), tmp_path)
    assert (progress.step, progress.best, progress.best_step, progress.waited) == (8, 3.0, 4, 2)
    assert progress.finished
    assert next(scores) == 9.0


def test_without_validation_text_the_loss_decides(recipe, tmp_path):
    found = recipe(data={"valid": []}, training={"steps": 4, "valid_every": 2})
    progress = train(found, tmp_path)
    losses = [event["loss"] for event in read_journal(tmp_path) if event["event"] == "validated"]
    assert len(losses) == 2
    assert progress.best == min(losses)


def test_epochs_are_a_limit_too(recipe, tmp_path):
    progress = train(recipe(training={"steps": 10_000, "epochs": 0.5, "valid_every": 1000}), tmp_path)
    assert progress.finished
    assert progress.epoch == 0
    assert 1 < progress.step < 1000


def test_no_time_at_all_is_a_run_of_no_update(recipe, tmp_path):
    """Time counts from the command's start, and reading the data may take all of it. There once was no model then."""
    progress = train(recipe(training={"steps": None, "minutes": 1e-6, "valid_every": None}), tmp_path)
    assert (progress.step, progress.finished) == (0, True)
    assert weights_of(tmp_path)


def test_r_drop_is_the_mean_of_two_passes_and_how_they_differ(recipe, tmp_path, text):
    """Against the paper's loss, written out: both passes in one forward, the second's dropout its own."""
    found = recipe(training={"steps": 1, "r_drop": 3.0, "label_smoothing": 0.1})
    train(found, tmp_path)
    job = TranslateJob(found, tmp_path, print, device=torch.device("cpu"))
    batch = job.store.batch(np.arange(5))
    job.model.train()
    torch.manual_seed(4)
    total, plain = job.loss(batch)
    torch.manual_seed(4)
    twice = batch.twice()
    logits = job.model.logits(job.model(twice.source, twice.source_lengths, twice.target_in))
    real = torch.arange(logits.shape[1]) < twice.target_lengths[:, None]
    right, (p, q) = twice.target_out[real], logits[real].log_softmax(-1).chunk(2)
    apart = F.kl_div(q, p, reduction="sum", log_target=True) + F.kl_div(p, q, reduction="sum", log_target=True)
    smoothed = F.cross_entropy(logits[real], right, reduction="sum", label_smoothing=0.1)
    assert total.item() == pytest.approx((smoothed + 3.0 / 2 * apart).item() / 2, rel=1e-5)
    assert plain.item() == pytest.approx(F.cross_entropy(logits[real], right, reduction="sum").item() / 2, rel=1e-5)
    job.model.eval()
    once = F.cross_entropy(job.model.logits(job.model(batch.source, batch.source_lengths, batch.target_in))[real[:5]],
                           batch.target_out[real[:5]], reduction="sum")  # fmt: skip
    assert job.loss(batch)[1].item() == pytest.approx(once.item(), rel=1e-5)


def test_tensorboard_draws_what_the_journal_says(recipe, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = recipe(training={"steps": 6, "valid_every": 3, "tensorboard": True})
    train(found, tmp_path)
    drawn = EventAccumulator(str(tmp_path / "tensorboard"))
    drawn.Reload()
    assert [scalar.value for scalar in drawn.Scalars("training/loss")] == pytest.approx(numbers(tmp_path, "loss"))
    assert [scalar.step for scalar in drawn.Scalars("validation/bleu")] == [3, 6]
    assert set(drawn.Tags()["scalars"]) >= {"training/learning rate", "training/gradient length", "validation/loss"}


def test_tensorboard_that_is_not_there_is_said(recipe, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"pip install 'regard\[tensorboard\]'"):
        train(recipe(training={"tensorboard": True}), tmp_path)


def test_training_does_not_wait_for_what_it_does_not_need(tmp_path):
    """FSDP and torch.compile came along at each start, through a class and through torch.optim: 0.8 s for nothing."""
    recipe = Path(__file__).parents[2] / "recipes" / "toy-generate.toml"
    code = (
        "import sys, regard\n"
        f"recipe = regard.read_recipe({str(recipe)!r}, {{'training': {{'steps': 1}}}})\n"
        f"regard.train(recipe, {str(tmp_path / 'run')!r})\n"
        "heavy = {'torch._dynamo', 'torch.distributed.fsdp', 'matplotlib', 'transformers'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=recipe.parents[1], timeout=120)
