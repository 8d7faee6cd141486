package scaffold
import ("testing";"fmt";"os")
func TestTry(t *testing.T){ os.RemoveAll("/tmp/m/new"); for _,l:=range Languages { f,e:=New("/tmp/m/new/"+l,"hello",l); fmt.Println(l,f,e)} }
