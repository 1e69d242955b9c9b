// `npm run dev -- up --demo`: the command line from its sources, without a build.
import { main } from './main.ts'

await main(process.argv)
