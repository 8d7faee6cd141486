package interpreter
import ("testing";"context";"fmt";"time";"github.com/mortise-dev/mortise/plugin")
func TestTry(t *testing.T){
 i:=New(Options{Dir:"/tmp/m/rt"})
 fmt.Printf("%+v\n", i.Found())
 for _,c:=range []plugin.Runner{{Entry:"plugin.ts"}}{
  s:=time.Now()
  argv,err:=i.Command(context.Background(),plugin.Package{Dir:"/tmp/m/tscase",Digest:"x"},&plugin.Manifest{Name:"hello",Runner:c})
  fmt.Println(argv,err,time.Since(s))
 }
 for _,d:=range []bool{true,false,false}{
  s:=time.Now()
  argv,err:=i.Command(context.Background(),plugin.Package{Dir:"/work/main/sdk/typescript/reference",Digest:"x",Dev:d},&plugin.Manifest{Name:"hello",Runner:plugin.Runner{Entry:"plugin.ts"}})
  fmt.Println(argv,err,time.Since(s))
  s=time.Now()
  argv,err=i.Command(context.Background(),plugin.Package{Dir:"/work/main/sdk/typescript/reference",Digest:"x",Dev:d},&plugin.Manifest{Name:"hello",Runner:plugin.Runner{Entry:"plugin.ts"}})
  fmt.Println(err,time.Since(s))
  s=time.Now()
  argv,err=i.Command(context.Background(),plugin.Package{Dir:"/work/main/sdk/python/reference",Digest:"x",Dev:d},&plugin.Manifest{Name:"hello",Runner:plugin.Runner{Entry:"plugin.py"}})
  fmt.Println(argv, err,time.Since(s))
 }
}
