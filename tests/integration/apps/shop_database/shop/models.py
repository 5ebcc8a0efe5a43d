from django.db import models


class Item(models.Model):
    name = models.CharField(max_length=40)


class Order(models.Model):
    item = models.ForeignKey(Item, on_delete=models.CASCADE)
