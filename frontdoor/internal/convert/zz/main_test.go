package zz
import ("testing";"fmt";"sort";"strings"
"github.com/portico-platform/portico/frontdoor/internal/catalogue"
"github.com/portico-platform/portico/services/vocabulary"
"k8s.io/kube-openapi/pkg/validation/spec")
func paths(c *catalogue.Catalogue,s *spec.Schema,p string,out map[string]string,depth int){
 s=c.Resolve(s); if s==nil||depth>14 {return}
 if strings.HasSuffix(p,"openAPIV3Schema")||p==".metadata"{out[p]="opaque";return}
 ty:=""; if len(s.Type)>0{ty=s.Type[0]}
 r:=""
 out[p]=ty+"/"+s.Format
 for n,q:=range s.Properties{q:=q
  paths(c,&q,p+"."+n,out,depth+1)}
 for _,n:=range s.Required{out[p+"."+n]+=" required"}
 _=r
 if s.Items!=nil{paths(c,s.Items.Schema,p+"[]",out,depth+1)}
 if s.AdditionalProperties!=nil{paths(c,s.AdditionalProperties.Schema,p+"{}",out,depth+1)}
}
func Test(t *testing.T){
 c,err:=catalogue.New(catalogue.Options{Vocabulary:vocabulary.K8s(),RuntimeConfig:catalogue.RuntimeConfig{}})
 if err!=nil{t.Fatal(err)}
 by:=map[string][]*catalogue.Type{}
 for _,g:=range c.Groups(){for _,v:=range g.Versions{for _,t:=range v.Types{k:=t.Key.String(); by[k]=append(by[k],t)}}}
 var ks []string
 for k:=range by{ks=append(ks,k)}
 sort.Strings(ks)
 for _,k:=range ks{ ts:=by[k]
  if len(ts)<2{fmt.Println("SINGLE",k,ts[0].APIVersion(),ts[0].Stored.APIVersion());continue}
  fmt.Print("MULTI ",k," stored ",ts[0].Stored.APIVersion()," :")
  for _,x:=range ts{fmt.Print(" ",x.APIVersion()," virt=",x.Virtual)}
  fmt.Println()
  a:=map[string]string{}; paths(c,ts[0].Schema,"",a,0)
  for _,x:=range ts[1:]{b:=map[string]string{};paths(c,x.Schema,"",b,0)
   var lines []string
   for p,v:=range a{ if w,ok:=b[p];!ok{lines=append(lines,"  -"+p+" "+v)}else if v!=w{lines=append(lines,"  ~"+p+" "+v+" | "+w)}}
   for p,v:=range b{ if _,ok:=a[p];!ok{lines=append(lines,"  +"+p+" "+v)}}
   sort.Strings(lines)
   fmt.Println(" ",ts[0].APIVersion(),"->",x.APIVersion()); for _,l:=range lines{fmt.Println(l)}
  }
 }
}
