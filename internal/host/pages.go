package host

// theirs returns the first of those rows of all pages that is picks, or all of them
// where most is 0. page returns the rows after the last of the page before it.
func theirs[T any](most int, page func(limit int, last *T) ([]T, error), is func(*T) (bool, error)) ([]T, error) {
	const limit = 200
	picked, last := []T{}, (*T)(nil)
	for {
		rows, err := page(limit, last)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			picks, err := is(&rows[i])
			if err != nil {
				return nil, err
			}
			if picks {
				picked = append(picked, rows[i])
			}
			if most > 0 && len(picked) == most {
				return picked, nil
			}
		}
		if len(rows) < limit {
			return picked, nil
		}
		last = &rows[len(rows)-1]
	}
}
