/** `docker run`, as far as our own commands use it: what a line for a shell would make of which container. */
import { spawnSync } from 'node:child_process'
import { expect } from 'vitest'
import type { Container } from './containers.ts'

export interface DockerRun extends Pick<Container, 'args' | 'env' | 'uid' | 'mounts'> {
  readonly image: string
}

/** Who runs the line, in which home, and the folder that stands for every named volume. */
export interface Machine {
  readonly uid: number
  readonly home: string
  readonly volume: string
}

const switches = ['-d', '--read-only']
const others = ['--name', '--restart', '--network', '--tmpfs', '--cap-drop', '--security-opt', '--userns']

/** @throws where the line says what is not known here */
export function dockerRun(line: string, { uid, home, volume }: Machine): DockerRun {
  const [run, ...words] = wordsOf(line, uid, home)
  expect(run).toBe('run')
  const env: Record<string, string> = {}
  const mounts: Record<string, string> = {}
  const said: string[] = []
  let user = uid
  for (;;) {
    const flag = words.shift() ?? ''
    if (!flag.startsWith('-')) {
      expect(said).toEqual(expect.arrayContaining(['--read-only', '--cap-drop ALL', '--network host']))
      return { image: flag, args: words, env, mounts, uid: user }
    }
    if (switches.includes(flag)) {
      said.push(flag)
      continue
    }
    const value = words.shift() ?? ''
    if (flag === '-e') env[value.slice(0, value.indexOf('='))] = value.slice(value.indexOf('=') + 1)
    else if (flag === '-v') {
      const [from = '', at = ''] = value.split(':')
      mounts[at] = from.includes('/') ? from : volume
    } else if (flag === '--user') user = Number(value.split(':')[0])
    else if (others.includes(flag)) said.push(`${flag} ${value}`)
    else throw new Error(`docker run ${flag} is not known here`)
  }
}

/** What a shell hands to docker. */
function wordsOf(line: string, uid: number, home: string): string[] {
  const script = `docker() { printf '%s\\0' "$@"; }\n${line}`
  const env = { PATH: process.env.PATH, HOME: home }
  const run = spawnSync('sh', ['-euc', script], { encoding: 'utf8', uid, cwd: home, env })
  expect(run.status, run.stderr).toBe(0)
  return run.stdout.split('\0').slice(0, -1)
}
