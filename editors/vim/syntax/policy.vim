" Colours for scheduling policies. A word is coloured wherever it stands alone; behind a dot it is a field.
if exists('b:current_syntax')
  finish
endif

syn case match

syn keyword policyMember policy library overlay import scheduler share use disable param let function queue filter score gang quota permit preempt bind test
syn keyword policyMember base
syn keyword policyClause when weight tier normalize max minmax reverse require else as range values order by fair asc desc missing first last backoff flush on log victims maxVictims
syn keyword policyStep given after expect that before rejected waits
syn keyword policyRoot pod node nodes pods podGroup cluster now victim
syn keyword policyBoolean true false
syn keyword policyNull null
syn keyword policyOperator in

syn match policyField "\.\s*?\?\s*\zs\h\w*"
syn match policyFunction "\<\h\w*\ze\s*("
syn match policyOnError "\<on\s\+error\>"
syn match policyTypeOf ":\s*\zs\%(bool\|int\|count\|double\|string\|timestamp\|duration\|cpu\|memory\|storage\|list\|map\|optional\)\>"

syn match policyNumber "\<\%(\d\+\%(\.\d\+\)\?\)\%(ms\|min\|s\|h\|d\|[KMGTPE]i\|[mkMGTP]\)\?\>"
syn match policyNumber "\<\d\+\%(\.\d\+\)\?[eE][+-]\?\d\+\>"
syn match policyNumber "\<\%(0x\x\+\|\d\+\)[uU]\?\>"

syn match policyEscape contained "\\\%([abfnrtv\\?\"'`]\|x\x\{2}\|u\x\{4}\|U\x\{8}\|\o\{3}\)"
syn match policyFilled contained "{[^{}\"']\+}"
syn region policyString start=+"+ skip=+\\.+ end=+"+ oneline contains=policyEscape,policyFilled
syn region policyString start=+'+ skip=+\\.+ end=+'+ oneline contains=policyEscape,policyFilled
syn region policyString start=+"""+ skip=+\\.+ end=+"""+ contains=policyEscape,policyFilled
syn region policyString start=+'''+ skip=+\\.+ end=+'''+ contains=policyEscape,policyFilled
syn region policyString start=+\<[bB]\?[rR]"+ end=+"+ oneline
syn region policyString start=+\<[bB]\?[rR]'+ end=+'+ oneline
syn region policyString start=+\<[bB]\?[rR]"""+ end=+"""+
syn region policyString start=+\<[bB]\?[rR]'''+ end=+'''+
syn match policyQuotedName "`[A-Za-z0-9_./ -]\+`"

syn keyword policyTodo contained TODO FIXME XXX
syn match policyComment "\%(//\|#\).*$" contains=policyTodo,@Spell
syn match policyDoc "///.*$" contains=policyTodo,@Spell

syn region policyFold start="{" end="}" transparent fold
syn sync minlines=200

hi def link policyMember Keyword
hi def link policyClause Statement
hi def link policyStep Statement
hi def link policyOnError Statement
hi def link policyRoot Identifier
hi def link policyField Normal
hi def link policyFunction Function
hi def link policyBoolean Boolean
hi def link policyNull Constant
hi def link policyOperator Operator
hi def link policyTypeOf Type
hi def link policyNumber Number
hi def link policyString String
hi def link policyEscape SpecialChar
hi def link policyFilled Special
hi def link policyQuotedName Identifier
hi def link policyComment Comment
hi def link policyDoc SpecialComment
hi def link policyTodo Todo

let b:current_syntax = 'policy'
