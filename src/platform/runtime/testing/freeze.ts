import type { ChildProcess } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { systemClock } from '#model'

/** SIGSTOP; resolves when no thread of it runs any more: on a busy machine it may still answer for a moment. */
export async function freeze(child: ChildProcess | undefined): Promise<void> {
  child?.kill('SIGSTOP')
  const stands = async () => / T /.test(await readFile(`/proc/${child?.pid}/stat`, 'latin1').catch(() => ' T '))
  while (!(await stands())) await systemClock.sleep(5)
}
