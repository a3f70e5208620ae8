"""Small programming tasks written for this model, in many wordings, and a few tool calls.

Each task: names, wish ("... that <wish>"), parameters, body, a check for a test, why in a sentence.
`{a}` and `{b}` in body and check stand for the parameters' names, `{f}` for the function's.
"""

import json
import random
import textwrap

LISTS, NUMBERS, TEXTS = ["values", "items", "numbers", "xs", "data"], ["n", "number", "x", "value"], ["text", "s", "line", "string"]
PATHS, DICTS = ["path", "filename", "name"], ["mapping", "d", "table"]

TASKS = [
    (["add", "add_numbers", "sum_two"], "adds two numbers", [["a", "x", "left"], ["b", "y", "right"]], "return {a} + {b}", "{f}(2, 3) == 5", "It returns the sum of both arguments"),
    (["multiply", "product"], "multiplies two numbers", [["a", "x"], ["b", "y"]], "return {a} * {b}", "{f}(2, 3) == 6", "It returns the product of both arguments"),
    (["divide", "safe_divide"], "divides two numbers and returns None when the divisor is zero", [["a", "x"], ["b", "y"]], "if {b} == 0:\n    return None\nreturn {a} / {b}", "{f}(6, 3) == 2", "It checks the divisor before it divides"),
    (["factorial", "fact"], "returns the factorial of a number", [NUMBERS], "result = 1\nfor i in range(2, {a} + 1):\n    result *= i\nreturn result", "{f}(5) == 120", "It multiplies the numbers from 2 up to the argument"),
    (["fibonacci", "fib"], "returns the n-th Fibonacci number", [["n"]], "a, b = 0, 1\nfor _ in range({a}):\n    a, b = b, a + b\nreturn a", "{f}(10) == 55", "It keeps the last two numbers and moves forward in a loop"),
    (["fibonacci_list", "fib_list"], "returns the first n Fibonacci numbers as a list", [["n"]], "result = []\na, b = 0, 1\nfor _ in range({a}):\n    result.append(a)\n    a, b = b, a + b\nreturn result", "{f}(5) == [0, 1, 1, 2, 3]", "It appends each number to a list"),
    (["is_prime", "prime"], "checks whether a number is prime", [NUMBERS], "if {a} < 2:\n    return False\nfor i in range(2, int({a} ** 0.5) + 1):\n    if {a} % i == 0:\n        return False\nreturn True", "{f}(7)", "It tries every divisor up to the square root"),
    (["primes", "primes_below", "sieve"], "returns all primes below a limit", [["limit", "n"]], "sieve = [True] * {a}\nresult = []\nfor i in range(2, {a}):\n    if sieve[i]:\n        result.append(i)\n        for j in range(i * i, {a}, i):\n            sieve[j] = False\nreturn result", "{f}(10) == [2, 3, 5, 7]", "It is the sieve of Eratosthenes"),
    (["gcd", "greatest_common_divisor"], "returns the greatest common divisor of two numbers", [["a"], ["b"]], "while {b}:\n    {a}, {b} = {b}, {a} % {b}\nreturn {a}", "{f}(12, 18) == 6", "It is Euclid's algorithm"),
    (["is_even", "even"], "checks whether a number is even", [NUMBERS], "return {a} % 2 == 0", "{f}(4)", "A number is even when the remainder of division by two is zero"),
    (["clamp", "limit"], "limits a number to a range", [NUMBERS, ["low"], ["high"]], "return max({b}, min({c}, {a}))", "{f}(9, 0, 5) == 5", "It takes the smaller and then the larger bound"),
    (["absolute", "absolute_value"], "returns the absolute value of a number", [NUMBERS], "if {a} < 0:\n    return -{a}\nreturn {a}", "{f}(-3) == 3", "It changes the sign of negative numbers"),
    (["power", "pow_int"], "raises a number to a power with a loop", [["base", "x"], ["exponent", "n"]], "result = 1\nfor _ in range({b}):\n    result *= {a}\nreturn result", "{f}(2, 8) == 256", "It multiplies in a loop"),
    (["total", "sum_list", "sum_values"], "returns the sum of a list", [LISTS], "total = 0\nfor item in {a}:\n    total += item\nreturn total", "{f}([1, 2, 3]) == 6", "It adds the items one by one"),
    (["mean", "average"], "returns the average of a list of numbers", [LISTS], "if not {a}:\n    return 0\nreturn sum({a}) / len({a})", "{f}([1, 2, 3]) == 2", "It divides the sum by the length"),
    (["median"], "returns the median of a list", [LISTS], "ordered = sorted({a})\nmiddle = len(ordered) // 2\nif len(ordered) % 2:\n    return ordered[middle]\nreturn (ordered[middle - 1] + ordered[middle]) / 2", "{f}([3, 1, 2]) == 2", "It sorts the list and takes the middle"),
    (["largest", "find_max", "maximum"], "finds the largest number in a list", [LISTS], "result = {a}[0]\nfor item in {a}:\n    if item > result:\n        result = item\nreturn result", "{f}([1, 5, 2]) == 5", "It keeps the largest item seen so far"),
    (["smallest", "find_min", "minimum"], "finds the smallest number in a list", [LISTS], "result = {a}[0]\nfor item in {a}:\n    if item < result:\n        result = item\nreturn result", "{f}([4, 1, 2]) == 1", "It keeps the smallest item seen so far"),
    (["reverse_list", "reversed_copy"], "reverses a list", [LISTS], "return {a}[::-1]", "{f}([1, 2]) == [2, 1]", "A slice with step minus one walks backwards"),
    (["reverse_string", "reverse"], "reverses a string", [TEXTS], "return {a}[::-1]", "{f}('abc') == 'cba'", "A slice with step minus one walks backwards"),
    (["is_palindrome", "palindrome"], "checks whether a string is a palindrome", [TEXTS], "clean = [c.lower() for c in {a} if c.isalnum()]\nreturn clean == clean[::-1]", "{f}('Anna')", "It compares the letters with their reverse"),
    (["count_words", "word_count"], "counts the words in a string", [TEXTS], "return len({a}.split())", "{f}('a b c') == 3", "It splits the string at white space"),
    (["word_frequencies", "count_each_word"], "counts how often each word occurs in a text", [TEXTS], "counts = {}\nfor word in {a}.lower().split():\n    counts[word] = counts.get(word, 0) + 1\nreturn counts", "{f}('a b a') == {'a': 2, 'b': 1}", "It keeps one counter a word in a dictionary"),
    (["count_vowels", "vowels"], "counts the vowels in a string", [TEXTS], "return sum(1 for c in {a}.lower() if c in 'aeiou')", "{f}('hello') == 2", "It counts the letters a, e, i, o and u"),
    (["count_char", "count_letter"], "counts how often a character occurs in a string", [TEXTS, ["char", "c"]], "count = 0\nfor item in {a}:\n    if item == {b}:\n        count += 1\nreturn count", "{f}('banana', 'a') == 3", "It compares each character"),
    (["capitalize_words", "title_case"], "capitalizes every word of a string", [TEXTS], "return ' '.join(word.capitalize() for word in {a}.split())", "{f}('a word') == 'A Word'", "It splits, capitalizes and joins the words"),
    (["remove_spaces", "strip_spaces"], "removes all spaces from a string", [TEXTS], "return {a}.replace(' ', '')", "{f}('a b') == 'ab'", "It replaces each space by nothing"),
    (["unique", "remove_duplicates", "deduplicate"], "removes duplicates from a list and keeps the order", [LISTS], "seen = set()\nresult = []\nfor item in {a}:\n    if item not in seen:\n        seen.add(item)\n        result.append(item)\nreturn result", "{f}([1, 1, 2]) == [1, 2]", "A set remembers the items already seen"),
    (["flatten", "flatten_list"], "flattens a list of lists", [LISTS], "result = []\nfor part in {a}:\n    result.extend(part)\nreturn result", "{f}([[1], [2]]) == [1, 2]", "It extends one list by every part"),
    (["chunks", "split_chunks"], "splits a list into chunks of a given size", [LISTS, ["size", "n"]], "return [{a}[i:i + {b}] for i in range(0, len({a}), {b})]", "{f}([1, 2, 3], 2) == [[1, 2], [3]]", "It cuts a slice at every step"),
    (["even_numbers", "filter_even", "only_even"], "returns only the even numbers of a list", [LISTS], "return [n for n in {a} if n % 2 == 0]", "{f}([1, 2, 4]) == [2, 4]", "A list comprehension keeps the even ones"),
    (["squares", "square_all"], "returns the squares of all numbers in a list", [LISTS], "return [n * n for n in {a}]", "{f}([1, 2]) == [1, 4]", "A list comprehension multiplies each number by itself"),
    (["bubble_sort"], "sorts a list with bubble sort", [LISTS], "result = list({a})\nfor i in range(len(result)):\n    for j in range(len(result) - i - 1):\n        if result[j] > result[j + 1]:\n            result[j], result[j + 1] = result[j + 1], result[j]\nreturn result", "{f}([2, 1]) == [1, 2]", "It swaps neighbours until everything is in order"),
    (["insertion_sort"], "sorts a list with insertion sort", [LISTS], "result = []\nfor item in {a}:\n    i = len(result)\n    while i > 0 and result[i - 1] > item:\n        i -= 1\n    result.insert(i, item)\nreturn result", "{f}([2, 1]) == [1, 2]", "It inserts each item at its place"),
    (["quicksort", "quick_sort"], "sorts a list with quicksort", [LISTS], "if len({a}) < 2:\n    return {a}\npivot = {a}[0]\nsmaller = [x for x in {a}[1:] if x < pivot]\nlarger = [x for x in {a}[1:] if x >= pivot]\nreturn {f}(smaller) + [pivot] + {f}(larger)", "{f}([2, 3, 1]) == [1, 2, 3]", "It splits the list around a pivot and sorts both parts"),
    (["binary_search", "bisect_search"], "finds an item in a sorted list with binary search", [LISTS, ["target", "item"]], "low, high = 0, len({a}) - 1\nwhile low <= high:\n    middle = (low + high) // 2\n    if {a}[middle] == {b}:\n        return middle\n    if {a}[middle] < {b}:\n        low = middle + 1\n    else:\n        high = middle - 1\nreturn -1", "{f}([1, 3, 5], 3) == 1", "It halves the range in every step"),
    (["linear_search", "find_index"], "returns the index of an item in a list or -1", [LISTS, ["target", "item"]], "for i, item in enumerate({a}):\n    if item == {b}:\n        return i\nreturn -1", "{f}([4, 5], 5) == 1", "It looks at the items one by one"),
    (["merge_sorted", "merge"], "merges two sorted lists", [["a", "left"], ["b", "right"]], "result = []\ni = j = 0\nwhile i < len({a}) and j < len({b}):\n    if {a}[i] <= {b}[j]:\n        result.append({a}[i])\n        i += 1\n    else:\n        result.append({b}[j])\n        j += 1\nreturn result + {a}[i:] + {b}[j:]", "{f}([1, 3], [2]) == [1, 2, 3]", "It always takes the smaller head of both lists"),
    (["read_lines", "load_lines"], "reads a file and returns its lines", [PATHS], "with open({a}, encoding='utf-8') as file:\n    return file.read().splitlines()", "{f}(__file__)", "The with statement closes the file"),
    (["count_lines", "line_count"], "counts the lines of a file", [PATHS], "with open({a}, encoding='utf-8') as file:\n    return sum(1 for line in file)", "{f}(__file__) > 0", "It walks over the file line by line"),
    (["write_text", "save_text"], "writes a string to a file", [PATHS, ["text", "content"]], "with open({a}, 'w', encoding='utf-8') as file:\n    file.write({b})", "{f}('out.txt', 'a') is None", "The with statement closes the file"),
    (["load_json", "read_json"], "loads a JSON file", [PATHS], "import json\nwith open({a}, encoding='utf-8') as file:\n    return json.load(file)", "callable({f})", "The json module parses the file"),
    (["invert", "swap_keys", "invert_dict"], "swaps the keys and values of a dictionary", [DICTS], "return {value: key for key, value in {a}.items()}", "{f}({'a': 1}) == {1: 'a'}", "A dictionary comprehension builds the new mapping"),
    (["merge_dicts", "combine"], "merges two dictionaries", [["a", "first"], ["b", "second"]], "result = dict({a})\nresult.update({b})\nreturn result", "{f}({'a': 1}, {'b': 2}) == {'a': 1, 'b': 2}", "It copies the first one and updates the copy"),
    (["sort_by_value", "sorted_items"], "returns the items of a dictionary sorted by value", [DICTS], "return sorted({a}.items(), key=lambda item: item[1])", "{f}({'a': 2, 'b': 1}) == [('b', 1), ('a', 2)]", "The key function picks the value of each item"),
    (["celsius_to_fahrenheit", "to_fahrenheit"], "converts Celsius to Fahrenheit", [["celsius", "c"]], "return {a} * 9 / 5 + 32", "{f}(100) == 212", "It multiplies by nine fifths and adds 32"),
    (["digit_sum", "sum_digits"], "returns the sum of the digits of a number", [NUMBERS], "return sum(int(digit) for digit in str(abs({a})))", "{f}(123) == 6", "It turns the number into a string and adds the digits"),
    (["to_binary", "binary"], "converts a number to a binary string", [NUMBERS], "if {a} == 0:\n    return '0'\ndigits = ''\nwhile {a}:\n    digits = str({a} % 2) + digits\n    {a} //= 2\nreturn digits", "{f}(5) == '101'", "It collects the remainders of division by two"),
    (["fizzbuzz", "fizz_buzz"], "prints FizzBuzz up to a number", [["n", "limit"]], "for i in range(1, {a} + 1):\n    if i % 15 == 0:\n        print('FizzBuzz')\n    elif i % 3 == 0:\n        print('Fizz')\n    elif i % 5 == 0:\n        print('Buzz')\n    else:\n        print(i)", "{f}(3) is None", "It tests for 15 before 3 and 5"),
    (["hello", "greet", "say_hello"], "prints a greeting", [["name"]], "print('Hello, ' + {a} + '!')", "{f}('you') is None", "It joins three strings and prints them"),
]

CLASSES = [
    ("Stack", "a stack", ["push", "pop", "peek"], "class Stack:\n\n    def __init__(self):\n        self.items = []\n\n    def push(self, item):\n        self.items.append(item)\n\n    def pop(self):\n        if not self.items:\n            raise IndexError('pop from an empty stack')\n        return self.items.pop()\n\n    def peek(self):\n        return self.items[-1]\n\n    def __len__(self):\n        return len(self.items)"),
    ("Queue", "a queue", ["put", "get"], "from collections import deque\n\n\nclass Queue:\n\n    def __init__(self):\n        self.items = deque()\n\n    def put(self, item):\n        self.items.append(item)\n\n    def get(self):\n        return self.items.popleft()\n\n    def __len__(self):\n        return len(self.items)"),
    ("Counter", "a counter", ["increment", "reset"], "class Counter:\n\n    def __init__(self):\n        self.count = 0\n\n    def increment(self):\n        self.count += 1\n        return self.count\n\n    def reset(self):\n        self.count = 0"),
    ("Point", "a point in the plane", ["distance"], "class Point:\n\n    def __init__(self, x, y):\n        self.x = x\n        self.y = y\n\n    def distance(self, other):\n        return ((self.x - other.x) ** 2 + (self.y - other.y) ** 2) ** 0.5\n\n    def __repr__(self):\n        return f'Point({self.x}, {self.y})'"),
    ("BankAccount", "a bank account", ["deposit", "withdraw"], "class BankAccount:\n\n    def __init__(self, balance=0):\n        self.balance = balance\n\n    def deposit(self, amount):\n        self.balance += amount\n\n    def withdraw(self, amount):\n        if amount > self.balance:\n            raise ValueError('not enough money')\n        self.balance -= amount"),
    ("Timer", "a timer", ["start", "stop"], "import time\n\n\nclass Timer:\n\n    def __init__(self):\n        self.started = None\n\n    def start(self):\n        self.started = time.monotonic()\n\n    def stop(self):\n        return time.monotonic() - self.started"),
    ("LinkedList", "a linked list", ["append", "__iter__"], "class Node:\n\n    def __init__(self, value):\n        self.value = value\n        self.next = None\n\n\nclass LinkedList:\n\n    def __init__(self):\n        self.head = None\n\n    def append(self, value):\n        node = Node(value)\n        if self.head is None:\n            self.head = node\n            return\n        last = self.head\n        while last.next:\n            last = last.next\n        last.next = node\n\n    def __iter__(self):\n        node = self.head\n        while node:\n            yield node.value\n            node = node.next"),
]

SMALL_TALK = [
    (["Hello", "Hi", "Hello!", "Hi there", "Hey"], "a greeting", "Hello! Which function shall I write?"),
    (["Who are you?", "What are you?", "What can you do?"], "to know who I am", "I am a small model that writes short Python functions."),
    (["Thanks", "Thank you!", "Great, thanks"], "to say thanks", "You are welcome."),
]


def block(code: str) -> str:
    return "```python\n" + code + "\n```"


def talk(rng: random.Random):
    """Turns for `corpus.to_messages`: a wish, the code, then up to three follow-ups."""
    dice = rng.random()
    if dice < 0.03:
        asks, wish, answer = rng.choice(SMALL_TALK)
        return [("user", rng.choice(asks)), ("assistant", answer, wish, "I answer in one sentence.")]
    if dice < 0.15:
        name, wish, methods, code = rng.choice(CLASSES)
        ask = rng.choice(["Write a Python class `{}` for {}.", "Write a class `{}` for {}.", "Make a class named `{}`: {}."]).format(name, wish)
        listed = ", ".join(f"`{m}`" for m in methods)
        return [("user", ask), ("assistant", block(code), f"a class `{name}` for {wish}", f"It needs {listed}."),
                ("user", rng.choice(["Explain it briefly.", "What does it do?"])),
                ("assistant", f"`{name}` is {wish} with the methods {listed}.", f"a short explanation of `{name}`", f"It has {listed}.")]
    names, wish, params, body, check, why = rng.choice(TASKS)
    f = rng.choice(names)
    args = []
    for choices in params:
        args.append(rng.choice([c for c in choices if c not in args and c != f]))

    def fill(s):
        for key, value in zip("abc", args):
            s = s.replace("{" + key + "}", value)
        return s.replace("{f}", f)

    body, check = fill(body), fill(check)
    head = f"def {f}({', '.join(args)}):\n"
    code = head + textwrap.indent(body, "    ")
    doc = wish[0].upper() + wish[1:]
    documented = head + f'    """{doc}."""\n' + textwrap.indent(body, "    ")
    ask = rng.choice([
        f"Write a Python function `{f}` that {wish}.", f"Write a Python function that {wish}.",
        f"Write a function `{f}` that {wish}.", f"Write a function that {wish}.",
        f"I need a Python function that {wish}.", f"Please write a Python function that {wish}. Call it `{f}`.",
        f"Can you write a function that {wish}?", f"Give me a Python function `{f}`. It {wish}.",
    ])
    quoted = " and ".join(f"`{a}`" for a in args)
    answer = block(code) + (f"\n\n{why}." if rng.random() < 0.3 else "")
    out = [("user", ask), ("assistant", answer, f"a function that {wish}", f"I name it `{f}` and it takes {quoted}. {why}.")]
    follow_ups = [
        [("user", rng.choice(["Add a docstring.", "Now add a docstring.", "Please add a docstring to it."])),
         ("assistant", block(documented), f"a docstring in `{f}`", "The code stays the same.")],
        [("user", rng.choice(["Now write a test.", "Write a test for it.", "Add a unit test."])),
         ("assistant", block(f"def test_{f}():\n    assert {check}"), f"a test for `{f}`", "One assert with known values will do.")],
        [("user", rng.choice(["Explain it briefly.", "How does it work?", "Explain the code."])),
         ("assistant", f"`{f}` {wish}. {why}.", f"a short explanation of `{f}`", f"It takes {quoted}.")],
    ]
    rng.shuffle(follow_ups)
    for pair in follow_ups[: rng.randint(0, 3)]:
        out += pair
    return out


TOOLS = [
    ("get_weather", "Current weather of a place.", "location", ["Paris", "Berlin", "Tokyo", "London", "Rome", "Oslo"],
     ["What is the weather in {}?", "How is the weather in {}?"], ["sunny, 21 degrees", "rain, 12 degrees", "cloudy, 15 degrees"], "It is {1} in {0}."),
    ("read_file", "Read a text file.", "path", ["main.py", "notes.txt", "setup.py", "test.py"],
     ["What is in {}?", "Show me the file {}."], ["print('hello')", "import sys", "x = 1"], "The file {0} holds: {1}"),
    ("run_tests", "Run the tests of a folder.", "folder", ["tests", "src", "lib", "test"],
     ["Run the tests in {}.", "Do the tests in {} pass?"], ["3 passed", "1 failed, 2 passed", "12 passed"], "The tests in {0}: {1}."),
    ("search", "Search the documentation.", "query", ["sorted", "os.walk", "json.dumps", "open"],
     ["Look up {}.", "Search for {}."], ["1 result", "no results", "5 results"], "The search for {0} gave {1}."),
]


def tool_chat(rng: random.Random):
    """A question that needs a tool: ends at the call, or at the answer after its result."""
    name, about, key, values, asks, results, answer = rng.choice(TOOLS)
    value, result = rng.choice(values), rng.choice(results)
    effort = rng.choice(["low", "medium", "high"])
    tool = {"type": "function", "function": {"name": name, "description": about, "parameters": {
        "type": "object", "properties": {key: {"type": "string"}}, "required": [key]}}}
    out = [{"reasoning_effort": effort, "tools": [tool]},
           {"role": "user", "content": rng.choice(asks).format(value)},
           {"role": "assistant", "reasoning_content": f"I call `{name}` for {value}.",
            "tool_calls": [{"type": "function", "function": {"name": name, "arguments": json.dumps({key: value})}}]}]
    if rng.random() < 0.5:
        out += [{"role": "tool", "name": name, "content": result},
                {"role": "assistant", "content": answer.format(value, result), "reasoning_content": "The tool answered."}]
    return out
