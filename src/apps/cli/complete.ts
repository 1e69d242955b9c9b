import type { Command, Option } from 'commander'
import { nounOf, nounWords, type Shell } from './words.ts'

/** What may stand where the cursor is. */
export interface Candidates {
  readonly words: readonly string[]
  /** names of clusters fit as well: only a hub knows them */
  readonly clusters: boolean
}

const nothing: Candidates = { words: [], clusters: false }

/** @param words after the name of the program; the last is the one being written, and may be empty */
export function candidates(program: Command, words: readonly string[]): Candidates {
  const before = words.slice(0, -1)
  const written = words.at(-1) ?? ''
  let command = program
  let awaited: Option | undefined
  const given: string[] = []
  for (const word of before) {
    if (awaited) awaited = undefined
    else if (word.startsWith('-')) awaited = optionAt(command, word)
    else {
      const next = given.length === 0 && command.commands.find((one) => one.name() === word)
      if (next) command = next
      else given.push(word)
    }
  }
  const { words: all, clusters } = awaited ? valuesOf(awaited) : placeOf(command, given, written)
  return { words: all.filter((word) => word.startsWith(written)), clusters }
}

/** The option that waits for a value; one of yes or no waits for none. */
function optionAt(command: Command, word: string): Option | undefined {
  const option = command.options.find(({ short, long }) => short === word || long === word)
  return option && (option.required || option.optional) ? option : undefined
}

const valuesOf = ({ argChoices = [], long }: Option): Candidates => ({
  words: argChoices,
  clusters: long === '--cluster',
})

function placeOf(command: Command, given: readonly string[], written: string): Candidates {
  if (written.startsWith('-'))
    return { words: command.options.flatMap(({ long }) => long ?? []).concat('--help'), clusters: false }
  const commands = command.createHelp().visibleCommands(command)
  if (command.commands.length > 0 && given.length === 0)
    return { words: commands.map((one) => one.name()), clusters: false }
  if (command.name() === 'get') return ofGet(given, written)
  if (command.name() === 'connect' && given.length === 0) return { words: [], clusters: true }
  const argument = command.registeredArguments[given.length]
  return argument?.argChoices ? { words: argument.argChoices, clusters: false } : nothing
}

function ofGet(given: readonly string[], written: string): Candidates {
  const [what] = given
  if (what !== undefined) return { words: [], clusters: ['clusters', 'agents'].includes(nounOf(what) ?? '') }
  // The singular only for who has begun to write one.
  const plurals = nounWords.slice(0, nounWords.length / 2)
  const some = plurals.some((noun) => noun.startsWith(written))
  return { words: some ? plurals : nounWords.slice(plurals.length), clusters: false }
}

/** Asks `clusterpulse complete` at each Tab, so that it knows what this version knows. Where it knows nothing, files are offered. */
const scripts: Readonly<Record<Shell, string>> = {
  bash: `# clusterpulse, for bash: source <(clusterpulse completion bash)
_clusterpulse() {
  local IFS=$'\\n'
  COMPREPLY=($(clusterpulse complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _clusterpulse clusterpulse`,
  zsh: `#compdef clusterpulse
# clusterpulse, for zsh: source <(clusterpulse completion zsh), after compinit
_clusterpulse() {
  local -a found
  found=("\${(@f)$(clusterpulse complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=(\${found:#})
  if (( $#found )); then compadd -- $found; else _files; fi
}
compdef _clusterpulse clusterpulse`,
  fish: `# clusterpulse, for fish: clusterpulse completion fish | source
function __clusterpulse_complete
  set -l before (commandline -opc)
  set -l found (clusterpulse complete -- $before[2..-1] (commandline -ct) 2>/dev/null)
  if set -q found[1]
    string join -- \\n $found
  else
    __fish_complete_path (commandline -ct)
  end
end
complete -c clusterpulse -f -a '(__clusterpulse_complete)'`,
}

export const completionScript = (shell: Shell): string => scripts[shell]
