"""The virtual machines themselves: two that reach each other, QEMU's monitor, what a script in one answers."""
import unittest

from machine import Machines, skip_if_missing


class TestMachines(unittest.TestCase):
    def test_two_that_reach_each_other(self):
        with Machines(2) as machines:
            first, second = machines.all
            self.assertIn("1 packets received", first.sh("busybox ping -c1 -w20 vm2"))
            self.assertEqual("vm2\n", second.sh("hostname"))
            self.assertEqual(3, first.start("exit 3") or first.wait(check=False)[0])
            with self.assertRaises(RuntimeError):
                first.sh("false")
            first.monitor("set_link n0 off")
            self.assertEqual("0\n", first.sh("cat /sys/class/net/eth0/carrier"))
            self.assertIn("0 packets received", second.sh("busybox ping -c1 -w2 vm1 || true"))
            first.monitor("set_link n0 on")
            self.assertIn("1 packets received", second.sh("busybox ping -c1 -w20 vm1"))


if __name__ == "__main__":
    skip_if_missing()
    unittest.main(argv=["test_machine"])
