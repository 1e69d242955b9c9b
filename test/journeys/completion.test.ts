import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { aNode, aWorld, complete, type World } from '../../src/pipeline/api/test/world.ts'
import { program } from '../process.ts'

const bin = join(import.meta.dirname, '../../bin/clusterpulse.js')
/** Under CI_REQUIRE_ALL=1 every shell is asked, and one that is not there fails its test. */
const isThere = (shell: string) =>
  process.env.CI_REQUIRE_ALL === '1' || spawnSync(shell, ['-c', 'true']).error === undefined

/**
 * Each asks its shell what Tab offers at the end of each of the given lines, and tells `<line>` before the offers of each, one a line.
 * bash: the function that our script registers is called as Tab does. zsh: a shell of its own in a pseudo-terminal, with its
 * completion system, in which Tab is pressed; what is given to it and fits is told. fish has a command for it.
 */
const scripts = {
  bash: `source <(clusterpulse completion bash)
registered=$(complete -p clusterpulse) || exit 1
[[ $registered =~ -F\\ ([^ ]+) ]] || exit 2
function_name=\${BASH_REMATCH[1]}
for line; do
  read -ra COMP_WORDS <<<"$line"
  [[ $line == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((\${#COMP_WORDS[@]} - 1)); COMP_LINE=$line; COMP_POINT=\${#line}
  "$function_name" clusterpulse "\${COMP_WORDS[COMP_CWORD]}" "\${COMP_WORDS[COMP_CWORD-1]}"
  printf '%s\\n' '<line>' "\${COMPREPLY[@]}"
done`,
  zsh: `zmodload zsh/zpty
zpty tab zsh -f -i
zpty -w tab 'autoload -Uz compinit && compinit -u -D && source <(clusterpulse completion zsh)
compadd() { local -a fits; builtin compadd -O fits "$@"; print; print -rl -- "<offer>"\${^fits}; builtin compadd "$@" }
press() { zle complete-word; print; print -r -- "<end>"; BUFFER= }
zle -N press && bindkey "^I" press && print -r -- "<"ready">"'
zpty -r -m tab said '*<ready>*' || exit 1
for line; do
  print -r -- '<line>'
  zpty -w -n tab "$line"$'\\t'
  zpty -r -m tab said '*<end>*' || exit 2
  for said in \${(f)\${said//$'\\r'}}; do [[ $said == '<offer>'?* ]] && print -r -- \${said#<offer>}; done
done
zpty -d tab`,
  fish: `clusterpulse completion fish | source
for line in $argv
  echo '<line>'
  complete -C $line
end`,
} as const

const flags = { bash: ['--norc', '--noprofile', '-c'], zsh: ['-f', '-c'], fish: ['--no-config', '-c'] } as const

const expected = {
  'get po': ['pods'],
  ge: ['get'],
  'get pods --out': ['--output'],
  'get pods -o ': ['json', 'table', 'wide', 'yaml'],
  'get pods --cluster prod-': ['prod-east', 'prod-west'],
  'get clusters prod-': ['prod-east', 'prod-west'],
  'get clusters none-': [],
} as const
/** Where we know nothing better, files. */
const aFile = 'audit verify rec'

let world: World
let dir = ''
let server = ''

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'clusterpulse-tab-'))
  writeFileSync(join(dir, 'records.log'), '')
  writeFileSync(join(dir, 'clusterpulse'), `#!/bin/sh\nexec "${process.execPath}" "${bin}" "$@"\n`)
  chmodSync(join(dir, 'clusterpulse'), 0o755)
  world = await aWorld()
  for (const name of ['prod-east', 'prod-west', 'lab']) {
    await world.connect(name)
    await world.batch(name, [complete('node', [aNode('a')])])
  }
  server = await world.server.start()
})
afterAll(async () => {
  await world?.[Symbol.asyncDispose]()
  if (dir) rmSync(dir, { recursive: true, force: true })
})

for (const shell of ['bash', 'zsh', 'fish'] as const) {
  const isMissing = !isThere(shell)
  it.skipIf(isMissing)(
    `Tab in ${shell} completes words, options and clusters${isMissing ? ` (skipped: no ${shell} here)` : ''}`,
    async () => {
      // In bash its line editor adds them, to an empty answer of ours.
      const all: Readonly<Record<string, readonly string[]>> = {
        ...expected,
        [aFile]: shell === 'bash' ? [] : ['records.log'],
      }
      const lines = Object.keys(all).map((words) => `clusterpulse ${words}`)
      // The first word after the script is its name, but for fish.
      const args = [...flags[shell], scripts[shell], ...(shell === 'fish' ? [] : [shell]), ...lines]
      await using run = program(shell, args, {
        env: { PATH: `${dir}:${process.env.PATH}`, CLUSTERPULSE_SERVER: server, HOME: dir, TERM: 'dumb' },
        cwd: dir,
      })
      expect(await run.ended(), run.stderr()).toBe(0)
      const offered = run.stdout().split('<line>\n').slice(1).map(offersIn)
      expect(Object.fromEntries(Object.keys(all).map((words, i) => [words, offered[i]]))).toEqual(all)
    },
  )
}

/** fish adds a description behind a tab; zsh's way to files is told of each twice. */
const offersIn = (text: string) => {
  const offers = text.split('\n').map((line) => line.split('\t')[0] ?? '')
  return [...new Set(offers)].filter((offer) => offer !== '').toSorted()
}
