import { bundle } from '/work/main/test/access/bundle.ts'

console.log(await bundle('/work/main/node_modules/.cache/axf', 'prof'))
