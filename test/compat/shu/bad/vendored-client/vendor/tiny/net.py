import json


def get(url):
    from urllib import parse, request

    return json.load(request.urlopen(parse.quote(url)))
