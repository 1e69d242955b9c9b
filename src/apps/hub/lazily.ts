/** A function of a module that is loaded with the first call. */
export const lazily =
  <Given extends unknown[], Answer>(load: () => Promise<(...given: Given) => Answer>) =>
  async (...given: Given): Promise<Awaited<Answer>> =>
    await (await load())(...given)
