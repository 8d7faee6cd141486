package host

// mostLooked is how many rows one request looks at, however few of them its caller may see.
const mostLooked = 400

// theirs returns the first of those rows of all pages that is picks, and at most so many. page
// returns the rows after the last of the page before it. If theirs stops because it has looked at
// [mostLooked] rows, rest is the last of them: the list goes on after it.
func theirs[T any](most int, page func(limit int, last *T) ([]T, error), is func(*T) (bool, error)) (picked []T, rest *T, err error) {
	const limit = 200
	picked = []T{}
	for looked := 0; ; {
		rows, err := page(limit, rest)
		if err != nil {
			return nil, nil, err
		}
		for i := range rows {
			picks, err := is(&rows[i])
			if err != nil {
				return nil, nil, err
			}
			if picks {
				picked = append(picked, rows[i])
			}
			if most > 0 && len(picked) == most {
				return picked, nil, nil
			}
		}
		if len(rows) < limit {
			return picked, nil, nil
		}
		rest = &rows[len(rows)-1]
		if looked += len(rows); looked >= mostLooked {
			return picked, rest, nil
		}
	}
}

// collect returns the rows of a list, at most limit of them, or all where limit is 0. page returns
// the rows after an id, and the id after which the list goes on. collect reads at most so many
// pages, or any number where pages is 0.
func collect[T any](before string, limit, pages int, page func(before string, limit int) (rows []T, rest string, err error)) (all []T, err error) {
	all = []T{}
	for n := 1; ; n++ {
		left := 0
		if limit > 0 {
			left = limit - len(all)
		}
		rows, rest, err := page(before, left)
		if err != nil {
			return nil, err
		}
		if all = append(all, rows...); rest == "" || limit > 0 && len(all) >= limit || n == pages {
			return all, nil
		}
		before = rest
	}
}
