/** Programs that see another time than this machine, by Debian's libfaketime: with everything in them, OpenSSL as well. */
import { existsSync, readdirSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const ROOT = '/usr/lib'

function library(): string | undefined {
  if (!existsSync(ROOT)) return undefined
  const places = readdirSync(ROOT).map((name) => join(ROOT, name, 'faketime', 'libfaketimeMT.so.1'))
  return places.find((path) => existsSync(path))
}

/** Why there is no such time here; undefined where there is. With CI_REQUIRE_ALL=1 nothing is skipped. */
export const noFakedTime = (): string | undefined =>
  process.env.CI_REQUIRE_ALL === '1' || library() !== undefined ? undefined : 'the package libfaketime is not installed'

/** A clock that can be set while programs run by it. */
export interface FakedTime {
  /** of programs that run by it */
  readonly env: Readonly<Record<string, string>>
  /** @param offset such as `-1h`, `+10y` or `+0`; seen within a second */
  set(offset: string): Promise<void>
}

/** @param file where it is kept, in a folder of the test */
export async function fakedTime(file: string, offset: string): Promise<FakedTime> {
  const set = (to: string) => writeFile(file, `${to}\n`)
  await set(offset)
  const env = {
    ...{ LD_PRELOAD: library() ?? '', FAKETIME_TIMESTAMP_FILE: file, FAKETIME_CACHE_DURATION: '1' },
    // Timers run as they do where a clock is set.
    ...{ FAKETIME_DONT_FAKE_MONOTONIC: '1', DONT_FAKE_MONOTONIC: '1' },
  }
  return { env, set }
}
