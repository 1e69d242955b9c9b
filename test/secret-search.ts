import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** What of a private key in PEM can be found again, however its lines are joined: each line that is not the same for all keys. */
export const linesOfKey = (pem: string): readonly string[] =>
  pem.split('\n').filter((line) => line.length > 40 && !line.startsWith('-----'))

/** Files below a folder, of any form, that hold one of these texts. @throws Error where the folder cannot be searched */
export function filesWith(folder: string, texts: readonly string[]): readonly string[] {
  const input = `${texts.join('\n')}\n`
  const { status, stdout, stderr } = spawnSync('grep', ['-rlaF', '-f', '-', '--', folder], { input, encoding: 'utf8' })
  if (status !== 0 && status !== 1) throw new Error(`grep failed in ${folder}: ${stderr}`)
  return stdout.split('\n').filter(Boolean)
}

/** What everybody on the machine, and whoever has the same user, can read of a process: its arguments and its environment. */
export function argumentsAndEnvironmentOf(pid: number): string {
  try {
    return ['cmdline', 'environ'].map((name) => readFileSync(`/proc/${pid}/${name}`, 'latin1')).join('\n')
  } catch {
    return '' // it ended meanwhile
  }
}
