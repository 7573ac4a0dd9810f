"""What runs jobs: a worker with a number of slots, for handlers and commands."""

from maitred.worker.context import RunningJob, current_job
from maitred.worker.worker import Worker

__all__ = ["RunningJob", "Worker", "current_job"]
