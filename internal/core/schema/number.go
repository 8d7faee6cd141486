package schema

import "strconv"

// number reads a number for the keywords that look at it.
func (m *machine) number(p *program) verdict {
	start := m.at
	whole, exponent, digits, ok := m.digits()
	switch {
	case !ok:
		return unsure
	case p.types&(kindNumber|kindInteger) == 0:
		return misfits
	case p.format != nil:
		return unsure
	case p.types == kindAll && p.simple == nil && p.whole == nil:
		return fits
	case exponent || digits > mostDigits:
		return judgedOr(p.types&kindNumber != 0 && p.simple == nil && p.whole == nil)
	case !whole:
		if p.types&kindNumber == 0 || p.simple != nil { // 1.0 is a whole number
			return unsure
		}
		return m.decimal(p.decimal, m.in[start:m.at])
	}
	n := int64(0)
	for _, c := range m.in[start:m.at] {
		if c != '-' {
			n = 10*n + int64(c-'0')
		}
	}
	if m.in[start] == '-' {
		n = -n
	}
	if p.simple != nil && !p.simple.numbers[n] {
		return misfits
	}
	b := p.whole
	return judged(b == nil || n >= b.least && n <= b.greatest && (b.divisor == 0 || n%b.divisor == 0))
}

func (m *machine) decimal(b *decimalBounds, raw []byte) verdict {
	if b == nil {
		return fits
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || !b.known {
		return unsure
	}
	return judged(f >= b.least && f <= b.greatest && f > b.above && f < b.below)
}

// digits reads a number, and says how it is spelled.
func (m *machine) digits() (whole, exponent bool, digits int, ok bool) {
	run := func() int {
		start := m.at
		for m.at < len(m.in) && m.in[m.at]-'0' <= 9 {
			m.at++
		}
		digits += m.at - start
		m.fuel -= m.at - start
		return m.at - start
	}
	m.is('-')
	first := m.at
	if n := run(); n == 0 || n > 1 && m.in[first] == '0' {
		return false, false, 0, false
	}
	whole = true
	if m.is('.') {
		if whole = false; run() == 0 {
			return false, false, 0, false
		}
	}
	if m.is('e') || m.is('E') {
		if exponent = true; !m.is('+') {
			m.is('-')
		}
		if n := run(); n == 0 || n > 3 { // see maxExponent
			return false, false, 0, false
		}
	}
	return whole, exponent, digits, true
}
