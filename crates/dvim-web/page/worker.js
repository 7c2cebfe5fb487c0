// Runs the program. The page asks { n, call, given }; the answer is { n, refused, answer } or, meanwhile, { stage }.
let program = null;
const text = (at, length) => new TextDecoder().decode(new Uint8Array(program.memory.buffer, at, length));
const imports = {
  dvim: {
    progress: (at, length, done, total) => postMessage({ stage: text(at, length), done, total }),
    broken: (at, length) => postMessage({ broken: text(at, length) }),
  },
};

function call(name, given) {
  for (const part of given) {
    const bytes = typeof part === 'string' ? new TextEncoder().encode(part) : new Uint8Array(part);
    const at = program.dvim_take(bytes.length);
    new Uint8Array(program.memory.buffer, at, bytes.length).set(bytes);
  }
  const refused = program[name]() === 1;
  const at = program.dvim_answer();
  return { refused, answer: program.memory.buffer.slice(at, at + program.dvim_answer_length()) };
}

onmessage = async ({ data: { n, module, call: name, given } }) => {
  try {
    if (module) {
      program = (await WebAssembly.instantiate(module, imports)).exports;
      program.dvim_start();
      return;
    }
    const { refused, answer } = call(name, given);
    postMessage({ n, refused, answer }, [answer]);
  } catch (e) {
    postMessage({ broken: String(e) });
  }
};
