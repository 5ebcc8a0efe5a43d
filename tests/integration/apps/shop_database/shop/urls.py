from django.db import connection, transaction
from django.http import HttpResponse
from django.urls import path

from shop.models import Item, Order


def order(request, item_id):
    """Read and write a row, and hold the connection for 80 ms while the database is idle, as with a
    locked row or a slow disk."""
    with transaction.atomic(), connection.cursor() as cursor:
        item = Item.objects.get(pk=item_id)
        Order.objects.create(item=item)
        cursor.execute("SELECT pg_sleep(0.08)")
    return HttpResponse(f"ordered {item.name}")


def report(request):
    """A query that keeps the database's CPU busy and the server's idle."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*), sum(sqrt(n)) FROM generate_series(1, 200000) AS n")
        count, _ = cursor.fetchone()
    return HttpResponse(f"counted {count}")


urlpatterns = [path("order/<int:item_id>", order), path("report", report)]
