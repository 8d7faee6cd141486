def median(xs):
    ys = sorted(xs)
    n = len(ys)
    return (ys[n // 2] if n % 2 else (ys[n // 2 - 1] + ys[n // 2]) / 2) if n else 0.0


def mad(xs):
    m = median(xs)
    return median([abs(x - m) for x in xs])
