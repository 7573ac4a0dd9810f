"""A Django project in one file whose slow work is done by a queue.

A request submits a job, another shows its place, its estimate and its result, and the queue tells the app of
the end by a signed callback. In two terminals:

    maitred up --app examples.grading
    WEBHOOK_SECRETS=$(maitred keys secret) python -m examples.django_app runserver 8000

    curl -s http://127.0.0.1:8000/essays/ada -d "Call me Ishmael."
    curl -s http://127.0.0.1:8000/essays/ada
    curl -s http://127.0.0.1:8000/grades
"""

import json
import os
import sys
from typing import Any

import django
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.handlers.asgi import ASGIHandler
from django.core.management import execute_from_command_line
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

import maitred
from examples import essays

settings.configure(
    ALLOWED_HOSTS=["127.0.0.1", "localhost"],
    DEBUG=False,
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware"],
    ROOT_URLCONF=__name__,
    SECRET_KEY=os.environ.get("DJANGO_SECRET_KEY", "for this example only"),
    USE_TZ=True,
)
django.setup()

submitted: dict[str, str] = {}
grades: dict[str, Any] = {}
seen: set[str] = set()


@csrf_exempt
async def essay(request: HttpRequest, student: str) -> HttpResponse:
    """Submit an essay by POST, or look at the last one."""
    async with essays.queue() as client:
        if request.method == "POST":
            job = await essays.submit(client, student, request.body.decode())
            submitted[student] = job.id
            return JsonResponse(essays.shown(job), status=202)
        if student not in submitted:
            return HttpResponse(status=404)
        return JsonResponse(essays.shown(await client.job(essays.QUEUE, submitted[student])))


@csrf_exempt
@require_POST
def told(request: HttpRequest) -> HttpResponse:
    """Hear from the queue: the signature tells that it is the queue, the id whether it was heard before."""
    try:
        id = maitred.webhooks.verify(essays.secrets(), request.headers, request.body)
    except maitred.UnverifiedWebhook:
        return HttpResponse(status=401)
    message = json.loads(request.body)
    if id not in seen and message["type"] == "job.ended":
        grades[message["data"]["submitter"]["id"]] = message["data"]["result"]
    seen.add(id)
    return HttpResponse(status=204)


@require_GET
def all_grades(_request: HttpRequest) -> HttpResponse:
    return JsonResponse(grades)


urlpatterns = [
    path("essays/<str:student>", essay),
    path("maitred", told),
    path("grades", all_grades),
]


def application() -> ASGIHandler:
    """Give the project to a server, as `uvicorn --factory examples.django_app:application`."""
    return get_asgi_application()


if __name__ == "__main__":
    execute_from_command_line(sys.argv)
