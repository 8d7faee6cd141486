from datetime import date, timedelta


def days(start, end):
    d, out = date.fromisoformat(start), []
    stop = date.fromisoformat(end)
    while d <= stop:
        if d.weekday() < 5:
            out.append(d)
        d += timedelta(days=1)
    return out


def burndown(issues, start, end):
    axis = days(start, end)
    total = sum(i["points"] for i in issues)
    ideal, actual = [], []
    for n, day in enumerate(axis, 1):
        ideal.append(round(total - total * n / len(axis), 2))
        done = sum(i["points"] for i in issues if i["done_on"] and date.fromisoformat(i["done_on"]) <= day)
        actual.append(total - done)
    return {"labels": [d.isoformat() for d in axis], "ideal": ideal, "actual": actual, "total": total}
