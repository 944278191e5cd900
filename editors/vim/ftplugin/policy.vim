" Scheduling policies: comments, indentation, and the toolchain as compiler and formatter.
if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=//\ %s comments=:///,://,:#
setlocal expandtab shiftwidth=2 softtabstop=2
setlocal iskeyword=@,48-57,_
setlocal formatoptions-=t formatoptions+=croql
setlocal smartindent cinkeys-=0#

" :make checks the file; :copen lists what it finds.
setlocal makeprg=policyengine\ lint\ --format\ github\ %:S
setlocal errorformat=::%trror\ %.%#file=%f\\,line=%l\\,%.%#col=%c\\,%.%#::%m
setlocal errorformat+=::%tarning\ %.%#file=%f\\,line=%l\\,%.%#col=%c\\,%.%#::%m
setlocal errorformat+=::%totice\ %.%#file=%f\\,line=%l\\,%.%#col=%c\\,%.%#::%m

let b:undo_ftplugin = 'setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< iskeyword<'
      \ . ' formatoptions< smartindent< cinkeys< makeprg< errorformat<'
