import { mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Plan } from '#model'
import type { Logger } from '#runtime'
import { decodePlan, encodePlan } from '#wire'

/** The plan of the hub, kept so that a restart without a hub collects as it did. Old or new as a whole, never half. */
export class PlanFile {
  readonly #path: string
  readonly #logger: Logger
  #writing: Promise<void> = Promise.resolve()
  /** what the disk did not take */
  #unkept: Plan | undefined

  constructor(path: string, logger: Logger) {
    this.#path = path
    this.#logger = logger
  }

  /** @returns undefined where there is none, or none that can be used */
  async read(): Promise<Plan | undefined> {
    try {
      return decodePlan(await readFile(this.#path))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#logger.warn({ err: error }, 'the kept plan cannot be used; the settings hold until the hub sends one')
      }
      return undefined
    }
  }

  /** Resolves when what was given so far is on disk, or could not be. */
  written(): Promise<void> {
    return this.#writing
  }

  /** Tries again what the disk did not take. */
  async flush(): Promise<void> {
    if (this.#unkept) await this.write(this.#unkept)
  }

  /** A plan that the disk does not take is used all the same. */
  write(plan: Plan): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      try {
        await mkdir(dirname(this.#path), { recursive: true })
        const file = await open(`${this.#path}.new`, 'w')
        try {
          await file.write(encodePlan(plan))
          await file.sync()
        } finally {
          await file.close()
        }
        await rename(`${this.#path}.new`, this.#path)
        this.#unkept = undefined
      } catch (error) {
        if (this.#unkept !== plan)
          this.#logger.error({ err: error }, 'the plan could not be kept; it is tried again, and holds until a restart')
        this.#unkept = plan
      }
    })
    return this.#writing
  }
}
