package words

import "strings"

// stopWords are words that are in most texts of their language, whatever these are
// about: of English, German, French and Spanish, and particles of Chinese and Japanese.
// One that means something in another of these languages is left out.
var stopWords = func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq(`
a about above after again all also am an and any are aren as at be because been before being below between both but by can could couldn did
didn do does doesn doing don down during each few for from further get got had hadn has hasn have haven having he her here hers herself him
himself his how i if in into is isn it its itself just let ll me more most my myself no nor not now of off on once only or other our ours
ourselves out over own please re same shall she should shouldn so some such than thank thanks that the their theirs them themselves then there
these they this those through to too under until up us ve very was wasn we were weren what when where which while who whom why will with won
would wouldn you your yours yourself yourselves hello hi hey yes
der das dem den des ein eine einen einem einer eines und oder aber ist sind war waren wird werden hat haben hatte ich du er sie es wir ihr mich
dich sich mir dir uns euch nicht kein keine auf aus bei bis durch für gegen ohne um von vor zu zum zur im ins mit nach über unter zwischen wenn
weil dass als wie wo wer wann warum welche welcher welches auch noch nur schon sehr mein dein sein bitte danke ja nein
le les un une et ou mais est sont était je tu il elle nous vous ils elles ne pas que qui quoi dans avec ce cet cette ces mon ton son ma ta sa
mes tes ses notre votre leur au aux du des où comment quand pourquoi oui
el los las unos unas y pero es está están era yo él ella nosotros ellos no con por para que quien como cuando donde porque mi tu su al del lo sí
的 了 是 在 我 你 他 她 它 们 这 那 不 和 有 吗 呢 吧 也 就 都 很
の は が を に へ と で も た て し い る か な さ れ ら り す ま
`) {
		all[word] = true
	}
	return all
}()
